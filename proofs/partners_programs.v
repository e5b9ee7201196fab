(* Partners: what the chain conditions, the antichain program, repair B, trees, *)
(* OTM, mixed selection and several calls refute, on the two-token pair.      *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal calls programs selected kept.
From Spectheory Require Import recursive selection trees repair repair_best examples partners examples_several.
From Spectheory Require Import spec.draft_selection spec.otm spec.greedy_multipath spec.mixed_multipath.
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
Notation first_A := (fun s : seq B => (head false s)%:R : F).

(* 2/3 is more than 1/3, and 1 more than 8/9                                   *)
Let two_thirds : (2%:R / 3%:R <= 1 / 3%:R :> F) = false.
Proof. by rewrite ler_pmul2r ?invr_gt0 ?ltr0n // lern1. Qed.
Let eight_ninths : (1 <= 8%:R / 9%:R :> F) = false.
Proof. by rewrite ler_pdivl_mulr ?ltr0n // mul1r ler_nat. Qed.

(* ---- the draft is always accepted                                          *)
Definition accept_all (x : seq B) : M F (seq B * B) := y <- draw (p x);; ret (x, y).

Lemma accept_all_sane x : sane accept_all x.
Proof.
apply: (dist_bind (dist_draw (p_row.1 x) (p_row.2 x))) => y _; apply: dist_ret.
exact: prefix_refl.
Qed.

Lemma accept_all_stops x (f : seq B -> F) : accept_all x (fun o => f o.1) = f x.
Proof. by rewrite /accept_all /bind /ret drawE /= -big_distrl /= p_row.2 mul1r. Qed.

Lemma accept_all_mean (f : seq B -> F) : iteration q 1 accept_all (fun o => f o.1)
  = 2%:R / 3%:R * f [:: true] + 1 / 3%:R * f [:: false].
Proof.
by rewrite -[LHS]/(walk q 1 [::] (fun x => accept_all x (fun o => f o.1))) walkE !walk0E !accept_all_stops.
Qed.

(* Statement 1.2: A would be accepted with 2/3, more than p(A)                 *)
Example accept_all_lossy : ~ lossless p q 1 accept_all.
Proof.
move=> good; have d := dist_iteration q_row (fun x _ => accept_all_sane x) (L := 1).
have /andP[_] := chain_condition p_row d good true (isT : size ([::] : seq B) < 1)%N.
rewrite /node_mass (accept_all_mean (fun s => (prefix _ s)%:R)) (accept_all_mean (fun s => (prefix _ s)%:R)) /=.
rewrite !mulr1 mulr0 addr0 /p -mulrDl (_ : (2%:R + 1) / 3%:R = 1); last by field.
by rewrite mulr1 two_thirds.
Qed.

(* the output law of block verification: B follows no accepted token with 1/3 *)
Example output_mass_value :
  iteration q 1 (block p q z 1) (fun o => (o == ([::], false))%:R) = 1 / 3%:R.
Proof.
have sane x : size x = 1%N -> sane (block p q z 1) x by move=> _; apply: block_sane => //; exact: z_proper.
have d := dist_iteration q_row sane; have good := block_lossless z p_row q_row 1.
rewrite (output_mass p_row d good false) // !(block_node_mass p_row q_row (z_proper F)) //.
by rewrite /weight /= nB /p /q; field.
Qed.

(* ---- the antichain program with two drafts: no lossless verifier accepts    *)
(* more than 8/9, which greedy multi-path verification attains (greedy_value) *)
Notation two_drafts := (several 2 (walk q 1 [::])).
Definition drawn (d : seq (seq B)) : Prop := size d = 2%N /\ all (fun x => size x == 1%N) d.

Lemma two_drafts_dist : dist drawn two_drafts.
Proof.
apply: (dist_bind (dist_walk 1 [::] q_row)) => x x1; apply: (dist_bind (dist_walk 1 [::] q_row)) => y y1.
by apply: dist_ret; rewrite /drawn /= x1 y1.
Qed.

Lemma drafted_B : drafted two_drafts [:: [:: false]] = 5%:R / 9%:R.
Proof.
rewrite /drafted severalS walkE !walk0E !severalS !walkE !walk0E /= /ret /q /=.
by field.
Qed.

Example two_drafts_bound verify : (forall d, drawn d ->
    dist (fun o => (size o.1 <= 1)%N && has (prefix o.1) d) (verify d)) ->
  lossless_call p 1 (d <- two_drafts;; verify d) ->
  mean_tau (d <- two_drafts;; verify d) <= 8%:R / 9%:R.
Proof.
move=> vd good; apply: (program_bound p_row two_drafts_dist vd good) => x [x0 chain anti].
rewrite /objective big_ord1 (sum_walk 1 x) walkE !walk0E !mul1r.
have A : x [:: true] <= 1 / 3%:R.
  by have /andP[_] := chain [::] true isT; rewrite x0 mulr1.
have Bm : x [:: false] <= 5%:R / 9%:R.
  have := anti [:: [:: false]]; rewrite big_seq1 drafted_B; apply=> //; split=> // a b.
  by rewrite !inE => /eqP -> /eqP ->.
apply: le_trans (ler_add A Bm) _; rewrite (_ : 1 / 3%:R + 5%:R / 9%:R = 8%:R / 9%:R) ?lexx //.
by field.
Qed.

(* to accept the first of two drafts is lossy                                 *)
Definition accept_first (d : seq (seq B)) : M F (seq B * B) := accept_all (head [::] d).
Example accept_first_lossy : ~ lossless_call p 1 (d <- two_drafts;; accept_first d).
Proof.
move=> /two_drafts_bound bound.
have vd d : drawn d -> dist (fun o => (size o.1 <= 1)%N && has (prefix o.1) d) (accept_first d).
  case: d => [|x d] [] //= _ /andP[/eqP x1 _].
  apply: (dist_weaken _ (accept_all_sane x)) => -[s y] /= sx.
  by rewrite sx -x1 size_prefix.
have := bound vd; rewrite [X in X <= _](_ : _ = 1) ?eight_ninths // -[RHS](dist_one two_drafts_dist).
apply: (dist_supp two_drafts_dist) => -[|x d] [] //= _ /andP[/eqP x1 _].
by rewrite /accept_first (accept_all_stops x (fun s => (size s)%:R)) x1.
Qed.

(* 0/0 of the repaired rows                                                   *)
Definition z' : convention F (option B) :=
  Convention (fun _ _ => 0) (fun=> 0) (fun _ t => (t == None)%:R).
Lemma z'_proper : proper z'.
Proof.
split=> [c t|c|]; rewrite ?lexx ?ler01 //; split=> [c t|c]; first exact: ler0n.
by rewrite (bigD1 None) //= big1 ?addr0 // => t /negbTE ->.
Qed.

(* ---- repair B: what keeps A and drops B may accept A with 1/3 (see          *)
(* repaired_value), so it may not accept all that is kept                     *)
Example accept_kept_lossy : ~ lossless_call p 1 (x <- @dropped F;; accept_all x).
Proof.
move=> good; have d : dist (fun x => size x <= 1)%N (@dropped F).
  by apply: (dist_weaken _ (dropped_dist F)) => x [].
have := repair_best p_row d z'_proper (fun x _ => accept_all_sane x) good (isT : size [:: true] <= 1)%N.
rewrite [map _ _]/= repaired_value; last exact: z'_proper.
rewrite [X in X <= _](_ : _ = 2%:R / 3%:R) ?two_thirds //.
rewrite -[LHS]/(@dropped F (fun x => accept_all x (fun o => (prefix [:: true] o.1)%:R))).
rewrite /dropped /bind /ret drawE big_bool (accept_all_stops _ (fun s => (prefix _ s)%:R)).
by rewrite (accept_all_stops _ (fun s => (prefix _ s)%:R)) /= mulr1 mulr0 addr0.
Qed.

(* ---- a tree of two children: recursive rejection that tests both against    *)
(* the target's row                                                           *)
Example tree_same_row_lossy :
  ~ lossless_call p 1 (tree_verification p q (fun _ => @same_row_tests F) 1 [:: 2%N]).
Proof.
have lhs : continued p 1 (tree_verification p q (fun _ => @same_row_tests F) 1 [:: 2%N]) first_A = 4%:R / 9%:R.
  rewrite /continued /tree_selection.tree_verification /bind2 /bind /= /bind /ret /=.
  rewrite !drawE !big_bool /= !drawE !big_bool /= /bind /ret /= !ratioA !ratioB examples.minB /=.
  rewrite !drawE !big_bool /= (resA F) (resB F) /bind /ret /= ?drawE ?big_bool /= /p /=.
  by rewrite examples.minA; field.
move=> /(_ first_A); rewrite lhs target_A => /eqP; rewrite -subr_eq0.
rewrite (_ : _ - _ = 1%:R / 9%:R); last by field.
by rewrite (negbTE (ninth_neq0 F 0)).
Qed.

(* nor is it coherent: one more draft changes P(A) from 1/2 to 2/3             *)
Example same_row_not_coherent :
  \sum_t q [::] t * @same_row_tests F [:: true; t] (fun y => y%:R) = 2%:R / 3%:R
  /\ @same_row_tests F [:: true] (fun y => y%:R) = 1 / 2%:R.
Proof.
rewrite big_bool /= /bind /common.coin /ret /= !ratioA !ratioB examples.minA examples.minB.
by rewrite !drawE !big_bool /= (resA F) (resB F) /q; split; field.
Qed.

(* ---- OTM of one draft: the plan that keeps the draft has the wrong marginal *)
Definition keeps (x : seq B) (y : B) : F := if x is [:: t] then q [::] t * (t == y)%:R else 0.
Example otm_keeps_lossy : ~ (forall f,
  spec.otm.otm (field_numbers F) (tokens B) (q [::]) keeps (p [::]) 1 f = \sum_y p [::] y * f y).
Proof.
have k0 x y : 0 <= keeps x y.
  by rewrite /keeps; case: x => [|t [|s x]]; rewrite ?lexx // mulr_ge0 ?q_row.1 ?ler0n.
have kd x : size x = 1%N -> \sum_y keeps x y = drafts_prob (field_numbers F) (q [::]) x.
  case: x => [|t [|s x]] //= _; rewrite big_bool /drafts_prob /= mulr1.
  by case: t; rewrite /keeps eqxx /= mulr1 mulr0 ?addr0 ?add0r.
move=> /(@otm_lossless _ _ (p [::]) (q [::]) keeps (p [::]) 1 k0 kd) /(_ true).
have -> : \sum_(x : 1.-tuple B) keeps x true = 2%:R / 3%:R.
  by rewrite (sum_walk 1 (keeps^~ true)) walkE !walk0E /keeps /q /=; field.
by rewrite /p => /eqP; apply/negP; rewrite eq_le two_thirds.
Qed.

(* ---- the first of two drafts or the highest, each with 1/2, block-verified  *)
(* with the rows of the draft                                                 *)
Notation half := (1 / 2%:R).
Definition mixed_with_draft_rows : M F (seq B * B) :=
  x <- first_or_highest (field_numbers F) (tokens B) q A_below half 1 1;; block p q z 1 x.
Example mixed_with_draft_rows_lossy : ~ lossless_call p 1 mixed_with_draft_rows.
Proof.
have lhs : continued p 1 mixed_with_draft_rows first_A = 5%:R / 18%:R.
  rewrite /continued /mixed_with_draft_rows /first_or_highest /bind2 /bind /= /bind /ret /=.
  rewrite !drawE !big_bool /= /bind /ret !drawE !big_bool /= /common.coin /= /block.block /bind2 /bind /ret /=.
  rewrite /bind /common.coin /= !nA !nB.
  rewrite /ret /= !correctionE /= !drawE !big_bool /= (resA F) (resB F) /p /q /=.
  by rewrite /bind /ret /= ?drawE ?big_bool /= /bind /ret ?drawE ?big_bool /=; field.
move=> /(_ first_A); rewrite lhs target_A => /eqP; rewrite -subr_eq0.
rewrite (_ : _ - _ = - (1 / 18%:R)); last by field.
by rewrite oppr_eq0 mul1r invr_eq0 pnatr_eq0.
Qed.

(* ---- the verifier of examples.v that draws its correction from the target's  *)
(* row: the validity equation fails at some output                            *)
Lemma wrong_sane x : sane (@wrong F) x.
Proof.
apply: (dist_bind (dist_token_loop p_row q_row (z_proper F) [::] x)) => s sx.
by apply: (dist_bind (dist_draw (p_row.1 s) (p_row.2 s))) => y _; exact: dist_ret.
Qed.

Example wrong_equation : ~ (forall b, size b = 2%N -> path_prob p [::] b > 0 ->
  \sum_(1 <= i < 3) output_law q 1 (@wrong F) (take i b) / path_prob p [::] (take i b) = 1).
Proof.
move=> sums; apply: (@wrong_not_lossless F).
by apply/(validity_equation p_row q_row (fun x _ => wrong_sane x)).
Qed.

(* and in several calls A comes first with probability 4/9                    *)
Example wrong_calls :
  specdec q (fun=> 1%N) (fun=> @wrong F) 1 [::] first_A != walk p 1 [::] first_A.
Proof.
have -> : specdec q (fun=> 1%N) (fun=> @wrong F) 1 [::] first_A = 4%:R / 9%:R.
  rewrite /= /bind2 /iteration /bind walkE !walk0E /= /wrong /bind /ret /=.
  rewrite /bind /coin /ret /= !ratioA !ratioB examples.minA examples.minB /= !drawE !big_bool /=.
  by rewrite /behind /p /q /=; field.
rewrite (_ : walk p 1 [::] first_A = 1 / 3%:R); last first.
  by rewrite walkE !walk0E /p /=; field.
rewrite -subr_eq0 (_ : _ - _ = 1%:R / 9%:R) ?(ninth_neq0 F 0) //.
by field.
Qed.
End Partners.
