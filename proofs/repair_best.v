(* Repair B is the best of all verifiers that see the kept tokens only (8.10). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal wrong_rows programs repair.
From Spectheory Require Import spec.repair.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section RepairBest.
Variables (F : realFieldType) (T : finType) (p : model F T) (L : nat) (kept : M F (seq T)).
Variable u : convention F (option T).
Hypotheses (p_row : is_row p) (kept_dist : dist (fun x => size x <= L)%N kept) (u_proper : proper u).
Notation target := (repaired_target (field_numbers F) p).
Notation rows := (repaired_draft (field_numbers F) L kept).
Notation repaired_block := (repaired L kept (block target rows u L)).
Implicit Types (a x : seq T) (t : T).

(* m(a) = P(the kept draft starts with a)                                     *)
Definition kept_mass a : F := kept (fun x => (prefix a x)%:R).

(* ---- every verifier that is handed the kept tokens                         *)
Section AnyVerifier.
Variable verify : verifier F T.
Hypothesis verify_sane : forall x, (size x <= L)%N -> sane verify x.
Notation call := (x <- kept;; verify x).

Lemma kept_call_dist : dist (fun o => size o.1 <= L)%N call.
Proof.
apply: (dist_bind kept_dist) => x xL; apply: (dist_weaken _ (verify_sane xL)) => o /size_prefix.
by move=> ox; exact: leq_trans ox xL.
Qed.

Lemma kept_mass_bound a : node_mass call a <= kept_mass a.
Proof.
rewrite /node_mass /kept_mass /bind -subr_ge0 -[- kept _]mulN1r -(dist_scale kept_dist).
rewrite -(dist_add kept_dist); apply: (dist_pos' kept_dist) => x xL; have dv := verify_sane xL.
have -> : (prefix a x)%:R = verify x (fun=> (prefix a x)%:R * 1).
  by rewrite (dist_scale dv) (dist_one dv) mulr1.
rewrite mulN1r -[- verify _ _]mulN1r -(dist_scale dv) -(dist_add dv).
apply: (dist_pos' dv) => -[s y] /= sx; rewrite mulN1r mulr1 subr_ge0 ler_nat.
by case as_: (prefix a s) => //; rewrite (prefix_trans as_ sx).
Qed.
End AnyVerifier.

(* ---- block verification of the filled draft                                *)
Lemma kept_text_some a : kept_text (map Some a) = a.
Proof. by elim: a => [//|t a IH]; rewrite /kept_text /= -/(kept_text _) IH. Qed.

Lemma filled_prefix a x n : prefix (map Some a) (map Some x ++ nseq n None) = prefix a x.
Proof.
elim: a x => [|t a IH] [|s x]; rewrite ?prefix0s //; first by case: (n).
by rewrite -[LHS]/((t == s) && prefix (map Some a) (map Some x ++ nseq n None)) IH.
Qed.

Lemma filled_mass_some a : filled_mass (field_numbers F) L kept (map Some a) = kept_mass a.
Proof.
apply: (dist_supp kept_dist) => x _; rewrite /filled filled_prefix.
by case: prefix.
Qed.

Lemma repaired_node_mass b : (size b <= L)%N ->
  node_mass repaired_block b = weight target rows u b * path_prob rows [::] b.
Proof.
move=> bL; transitivity (node_mass (iteration rows L (block target rows u L)) b).
  pose f (x : seq (option T)) : F := block target rows u L x (fun o => (prefix b o.1)%:R).
  transitivity ((x <- kept;; ret (filled L x)) f); first by [].
  by rewrite (filled_law kept_dist).
exact: (block_node_mass (target_row p_row) (rows_row kept_dist) u_proper bL).
Qed.

Lemma path_prob_filled b : (size b <= L)%N ->
  path_prob rows [::] b = filled_mass (field_numbers F) L kept b.
Proof.
elim/last_ind: b => [_|b t IH bL].
  rewrite -[LHS](dist_one kept_dist); apply: (dist_supp kept_dist) => x _.
  by rewrite prefix0s.
rewrite size_rcons in bL.
by rewrite path_prob_rcons cat0s IH ?(ltnW bL) // mass_rcons.
Qed.

Lemma weight_ge0 b : 0 <= weight target rows u b.
Proof.
elim/last_ind: b => [|b t IH]; first exact: ler01.
rewrite /weight weight_from_rcons le_minr ler01 andbT mulr_ge0 //.
exact: (ratio_ge0 (target_row p_row) (rows_row kept_dist) u_proper).
Qed.

(* x(a, t) = min(p(t | a) x(a), m(a, t))                                       *)
Theorem repair_node_mass a t : (size a < L)%N ->
  node_mass repaired_block (map Some (rcons a t))
  = Num.min (p a t * node_mass repaired_block (map Some a)) (kept_mass (rcons a t)).
Proof.
move=> aL; have aL' : (size (map Some a) < L)%N by rewrite size_map.
have aL'' : (size (rcons (map Some a) (Some t)) <= L)%N by rewrite size_rcons.
rewrite -filled_mass_some map_rcons -path_prob_filled // !repaired_node_mass ?(ltnW aL') //.
rewrite path_prob_rcons cat0s /weight weight_from_rcons cat0s -/(weight target rows u (map Some a)).
set b := map Some a; have w0 := weight_ge0 b; set w := weight _ _ _ _ in w0 *.
have P0 : 0 <= path_prob rows [::] b by exact: path_prob_ge0 (rows_row kept_dist) _ _.
set P := path_prob _ _ _ in P0 *; set R := rows b (Some t).
have A : R * next_weight target rows u b w (Some t) = Num.min (w * p a t) R.
  have := accepted u (target_row p_row) (rows_row kept_dist) b (Some t) w0.
  rewrite gainE -/R => ->; rewrite /= kept_text_some.
  case: (leP (w * p a t) R) => [le|lt]; first by rewrite max_r ?subr0 // subr_le0.
  by rewrite max_l ?subr_ge0 ?(ltW lt) // subKr.
rewrite next_weightE in A; rewrite [LHS]mulrC -mulrA A minr_pmulr //; congr Num.min.
by ring.
Qed.

(* no lossless verifier of the kept tokens accepts more, at any node           *)
Theorem repair_best verify a : (forall x, (size x <= L)%N -> sane verify x) ->
  lossless_call p L (x <- kept;; verify x) -> (size a <= L)%N ->
  node_mass (x <- kept;; verify x) a <= node_mass repaired_block (map Some a).
Proof.
move=> sane good; have cd := kept_call_dist sane.
elim/last_ind: a => [_|a t IH aL].
  rewrite [X in _ <= X](_ : _ = 1); last first.
    by rewrite repaired_node_mass //= /weight /= mulr1.
  rewrite -(dist_one cd) le_eqVlt; apply/orP; left; apply/eqP.
  by apply: (dist_supp cd) => o _; rewrite prefix0s.
rewrite size_rcons in aL; rewrite repair_node_mass // le_minr kept_mass_bound // andbT.
have /andP[_ chain] := chain_condition p_row cd good t aL.
by apply: le_trans chain _; rewrite ler_wpmul2l ?p_row.1 // IH // ltnW.
Qed.
End RepairBest.
