(* Partners: what the statements on kept drafts and several paths refute, on  *)
(* the two-token pair.                                                        *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal calls adaptive lengths kept selection trees repair wrong_rows examples.
From Spectheory Require spec.repair.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Partners.
Variable F : realFieldType.
Notation B := bool_finType.
Notation p := (@p F).
Notation q := (@q F).
Notation z := (@z F).
Let p_row := @p_row F.
Let q_row := @q_row F.

Lemma ninth_neq0 (n : nat) : n.+1%:R / 9%:R != 0 :> F.
Proof. by rewrite mulf_neq0 ?invr_eq0 ?pnatr_eq0. Qed.

(* A rule that looks at a token before it keeps it: B is dropped, and the     *)
(* draft ends as if it had never been drawn. Its draft defect is 2/9.         *)
Definition dropped : M F (seq B) :=
  t <- draw (q [::]);; ret (if t then [:: t] else [::]).

Lemma dropped_first (f : seq B -> F) : completed_draft q 1 dropped f =
  8%:R / 9%:R * f [:: true] + 1 / 9%:R * f [:: false].
Proof.
rewrite /completed_draft /dropped /bind /ret drawE big_bool /= /bind /ret.
by rewrite drawE big_bool /= /q; field.
Qed.

Example dropped_not_right : ~ draft_law_right q 1 dropped.
Proof.
move=> /(_ (fun x => (head false x)%:R)); rewrite dropped_first walkE /= /ret /q /= => /eqP.
rewrite -subr_eq0 (_ : _ - _ = 2%:R / 9%:R); last by field.
by rewrite (negbTE (ninth_neq0 1)).
Qed.

Lemma dropped_dist : dist (fun x => (size x <= 1)%N /\ path_prob q [::] x != 0) dropped.
Proof.
apply: (dist_bind (dist_draw (q_row.1 _) (q_row.2 _))) => t _; apply: dist_ret.
case: t; split=> //=; last by rewrite oner_neq0.
by rewrite mulr1 /q mulf_neq0 ?invr_eq0 ?pnatr_eq0.
Qed.

Example dropped_lossy :
  ~ (forall p, is_row p ->
     forall f, (x <- dropped;; handed p (block p q z) 1 x) f = walk p 2 [::] f).
Proof.
move=> /(kept_block_iff q_row (z_proper F) dropped_dist); exact: dropped_not_right.
Qed.

Example dropped_defect :
  total_variation 2 (x <- dropped;; handed q (block q q z) 1 x) (walk q 2 [::]) = 2%:R / 9%:R.
Proof.
rewrite (kept_block_defect z q_row dropped_dist) /total_variation.
rewrite (sum_walk 1 (fun b => `|Pr _ b - Pr _ b|)) walkE !walk0E /Pr !dropped_first !walkE !walk0E.
rewrite /q !eqseq_cons !eqxx /= (_ : _ - _ = 2%:R / 9%:R); last by field.
rewrite (_ : _ - _ = - (2%:R / 9%:R)); last by field.
by rewrite normrN ger0_norm ?divr_ge0 ?ler0n //; field.
Qed.

(* The same rule repaired, at the target p: A is accepted with probability    *)
(* min(p, q) = 1/3, and nothing is lost (repair_block).                       *)
Example repaired_value u : proper u ->
  node_mass (spec.repair.repaired 1 dropped
    (block (spec.repair.repaired_target numF p) (spec.repair.repaired_draft numF 1 dropped) u 1))
    [:: Some true] = 1 / 3%:R.
Proof.
move=> u_proper; set target := spec.repair.repaired_target _ _; set rows := spec.repair.repaired_draft _ _ _.
have d : dist (fun x => size x <= 1)%N dropped by apply: (dist_weaken _ dropped_dist) => x [].
have tr : is_row target by exact: target_row p_row.
have rr : is_row rows by exact: rows_row d.
have mass b : spec.repair.filled_mass numF 1 dropped b = 2%:R / 3%:R * (prefix b [:: Some true])%:R
    + 1 / 3%:R * (prefix b [:: None])%:R.
  by rewrite /spec.repair.filled_mass /dropped /bind /ret drawE big_bool /q;
    case: (prefix b [:: Some true]); case: (prefix b [:: None]).
have A : rows [::] (Some true) = 2%:R / 3%:R.
  rewrite /rows rowsE !mass /= !mulr1 !mulr0 addr0 (_ : 2%:R / 3%:R + 1 / 3%:R = 1); last by field.
  by rewrite oner_eq0 divr1.
transitivity (node_mass (iteration rows 1 (block target rows u 1)) [:: Some true]).
  exact: (filled_law d (fun x => block target rows u 1 x (fun o => (prefix [:: Some true] o.1)%:R))).
rewrite block_node_mass // /= mulr1 mulrC (accepted u tr rr) ?ler01 // gainE A mul1r [target [::] _]/(p [::] true).
by rewrite max_r ?subr0 // /p subr_le0 ler_pmul2r ?invr_gt0 ?ltr0n // ler1n.
Qed.

Lemma third_neq0 : (1 / 3%:R == 0 :> F) = false.
Proof. by apply/negbTE; rewrite mul1r invr_eq0 pnatr_eq0. Qed.
Lemma resA : residual p q z [::] 1 true = 0.
Proof.
rewrite residualE S_one third_neq0 gainE max_r ?mul0r // /p /q mul1r subr_le0.
by rewrite ler_pmul2r ?invr_gt0 ?ltr0n // ler1n.
Qed.
Lemma resB : residual p q z [::] 1 false = 1.
Proof.
rewrite residualE S_one third_neq0 gainE max_l /p /q ?mul1r; first by field.
by rewrite subr_ge0 ler_pmull ?invr_gt0 ?ltr0n // ler1n.
Qed.

(* Token verification of one drafted token, naive sampling of two: each is    *)
(* lossless at its length, but the switch is not.                             *)
Definition switched (n : nat) (x : seq B) : M F (seq B * B) :=
  if n is 2 then naive_sampling p 2 [:: x] else token p q z n x.

Example switched_lossy : ~ (forall stop f,
  (x <- adraft q stop 2 [::];; handed p switched 2 x) f = walk p 3 [::] f).
Proof.
move=> /(lengths_iff p q) [_] /(_ [:: true] (fun s => (head false s)%:R) isT).
have qA : q [::] true != 0 by rewrite /q mulf_neq0 ?invr_eq0 ?pnatr_eq0.
rewrite /= mulr1 => /(_ qA); set f := fun s : seq B => _.
have two t : handed p switched 2 [:: true; t] f = 1 / 3%:R.
  transitivity (cont p 3 [::] f); first exact: (@naive_main F B p 2 f 2 [::] [:: [:: true; t]]).
  by rewrite /cont !walkE /= /ret /f /p /=; field.
have one : handed p switched 2 [:: true] f = 1 / 2%:R.
  rewrite /handed /bind2 /switched /= /token.token /bind /= /bind /ret /=.
  rewrite ratioA examples.minA !correctionE /= !drawE !big_bool /= resA resB.
  rewrite /bind !drawE !big_bool /= /bind /ret ?drawE ?big_bool /= ?drawE ?big_bool /= /f /p /=.
  by field.
rewrite big_bool /= !two one /q -mulrDl => /eqP.
rewrite -subr_eq0 (_ : _ - _ = - (1 / 6%:R)); last by field.
by rewrite oppr_eq0 mul1r invr_eq0 pnatr_eq0.
Qed.

(* Naive sampling that draws again if the target's token was not drafted      *)
Definition drawn_again (c xs : seq B) : M F B :=
  y <- draw (p c);; if y \in xs then ret y else draw (p c).

Example naive_drawn_again_lossy : ~ lossless_call p 1 (draft_selection p q drawn_again 1 1).
Proof.
pose f s : F := (head false s)%:R.
have rhs : walk p 2 [::] f = 1 / 3%:R by rewrite !walkE /= /ret /p /f /=; field.
have lhs : continued p 1 (draft_selection p q drawn_again 1 1) f = 11%:R / 27%:R.
  rewrite /continued /draft_selection.draft_selection /bind2 /bind severalS walkE !walk0E /=.
  rewrite /drawn_again /bind /ret /= !drawE !big_bool /= !drawE !big_bool /=.
  by rewrite /bind !drawE !big_bool /= /ret /f /p /=; field.
move=> /(_ f); rewrite lhs rhs => /eqP; rewrite -subr_eq0.
rewrite (_ : _ - _ = 2%:R / 27%:R); last by field.
by rewrite mulf_eq0 invr_eq0 !pnatr_eq0.
Qed.

(* Recursive rejection that tests every draft against the target's row        *)
Fixpoint same_row_tests (xs : seq B) : M F B :=
  if xs is x :: xs' then
    accepted <- coin (Num.min (ratio p q z [::] x) 1);;
    if accepted then ret x else same_row_tests xs'
  else draw (residual p q z [::] 1).

Example same_row_tests_lossy :
  ~ lossless_call p 1 (draft_selection p q (fun _ => same_row_tests) 1 2).
Proof.
pose f s : F := (head false s)%:R.
have rhs : walk p 2 [::] f = 1 / 3%:R by rewrite !walkE /= /ret /p /f /=; field.
have lhs : continued p 1 (draft_selection p q (fun _ => same_row_tests) 1 2) f = 4%:R / 9%:R.
  rewrite /continued /draft_selection.draft_selection /bind2 /bind !severalS walkE !walk0E /=.
  rewrite /bind /ret !drawE !big_bool /= /bind /ret /= !ratioA !ratioB examples.minB /=.
  rewrite !drawE !big_bool /= resA resB /bind /ret /= ?drawE ?big_bool /= /f /p /=.
  by rewrite examples.minA; field.
move=> /(_ f); rewrite lhs rhs => /eqP; rewrite -subr_eq0.
rewrite (_ : _ - _ = 1%:R / 9%:R); last by field.
by rewrite (negbTE (ninth_neq0 0)).
Qed.

(* Token verification with the rows 1/2, 1/2 in place of p: wrong behind      *)
(* every text, and lossy, because the empty prefix is always accepted.        *)
Definition fair (c : seq B) (t : B) : F := 1 / 2%:R.

Lemma fair_row : is_row fair.
Proof.
split=> [c t|c]; first by rewrite divr_ge0 ?ler0n ?ler01.
by rewrite big_bool /fair /=; field.
Qed.

Example fair_rows_lossy L : ~ lossless_call p L (iteration q L (token fair q z L)).
Proof.
have d : dist (fun o : seq B * B => size o.1 <= L)%N (iteration q L (token fair q z L)).
  apply: (dist_iteration q_row) => x _.
  by apply: token_sane; [exact: fair_row | exact: q_row | exact: z_proper].
have good : lossless_call fair L (iteration q L (token fair q z L)).
  exact: token_lossless fair_row q_row L.
move=> /(wrong_rows_lossless d fair_row p_row good) /(_ [::] true isT).
rewrite (_ : node_mass _ _ = 1); last first.
  rewrite -[RHS](dist_one d); apply: (dist_supp d) => o _ /=.
  by rewrite prefix0s.
rewrite mul1r /fair /p (_ : _ - _ = 1 / 6%:R); last by field.
by apply/eqP; rewrite mul1r invr_eq0 pnatr_eq0.
Qed.
End Partners.
