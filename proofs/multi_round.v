(* Recursive rejection, OTM and K-SEQ along K paths (multi_round, otm, spectr). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless recursive kseq_lossless.
From Spectheory Require Import spec.draft_selection spec.recursive_rejection spec.otm spec.kseq.
From Spectheory Require Import selection.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section RecursivePaths.
Variables (F : realFieldType) (T : finType) (cv : convention F T).
Hypothesis cv_proper : proper cv.
Notation always r := (fun _ : seq T => r).
Notation tests := (recursive_tests (field_numbers F) (tokens T) cv).
Notation recursive := (recursive_rejection (field_numbers F) (tokens T) cv).

Lemma residual_row (r q : T -> F) : prob_row r -> prob_row q ->
  prob_row (residual (always r) (always q) cv [::] 1).
Proof.
move=> r_row q_row; set S := total_gain (always r) (always q) [::] 1.
have [_ _ [u0 u1]] := cv_proper.
have E t : residual (always r) (always q) cv [::] 1 t =
    if S == 0 then res0 cv [::] t else gain (always r) (always q) [::] 1 t / S by [].
split=> [t|]; first by rewrite E; case: eqP => _; rewrite ?u0 // divr_ge0 ?gain_ge0 ?total_gain_ge0.
under eq_bigr do rewrite E.
case: eqP => [_|/eqP S0]; first exact: u1.
by rewrite -big_distrl /= -total_gainE divff.
Qed.

Lemma tests_dist q x r : prob_row r -> prob_row q -> dist (fun=> True) (tests q x r).
Proof.
move=> r_row q_row; elim: x r r_row => [|x1 x IH] r r_row.
  by apply: dist_draw; [exact: r_row.1 | exact: r_row.2].
apply: (@dist_bind _ _ _ (fun=> True)) => [|b _].
  apply: dist_coin; rewrite le_minr ler01 andbT le_minl lexx orbT andbT ratioE.
  have [u0 _ _] := cv_proper.
  by case: eqP => _; rewrite ?u0 // divr_ge0 ?r_row.1 ?q_row.1.
case: b; first exact: dist_ret.
exact: IH (residual_row r_row q_row).
Qed.

(* to draw all drafts first changes nothing                                   *)
Lemma tests_drawn K q r f : prob_row r -> prob_row q ->
  (x <- several K (draw q);; tests q x r) f = recursive (nseq K q) r f.
Proof.
move=> r_row q_row; elim: K r r_row f => [//|K IH] r r_row f.
have dK : dist (fun xs => size xs = K) (several K (draw q)).
  exact: dist_several (dist_draw q_row.1 q_row.2).
rewrite /bind severalS /= /bind !drawE; apply: eq_bigr => t _; congr (_ * _).
rewrite !coinE -IH; last exact: residual_row.
by rewrite (dist_add dK) !(dist_scale dK) /ret (dist_const _ dK).
Qed.

Lemma tests_lossless K q r f : prob_row r -> prob_row q ->
  (x <- several K (draw q);; tests q x r) f = draw r f.
Proof.
move=> r_row q_row; rewrite tests_drawn // recursive_rejection_lossless ?drawE //.
by move=> i; rewrite size_nseq nth_nseq => ->.
Qed.

Theorem recursive_paths_lossless (p q : model F T) L K : is_row p -> is_row q -> (0 < K)%N ->
  lossless_call p L (draft_selection p q (fun c x => tests (q c) x (p c)) L K).
Proof.
move=> [p0 p1] [q0 q1] K0; apply: draft_selection_lossless => //.
- by move=> c xs _; apply: tests_dist; split.
- by move=> c k f _; apply: tests_lossless; split.
Qed.
End RecursivePaths.

(* OTM along K paths, with one plan for each text and number of drafts        *)
Section OTMPaths.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Variables (plan : seq T -> nat -> seq T -> T -> F) (res0 : T -> F).
Hypotheses (p_row : is_row p) (q_row : is_row q) (res0_row : prob_row res0).
Hypothesis plan_ge0 : forall c K x y, 0 <= plan c K x y.
Hypothesis plan_drafts : forall c K x, size x = K ->
  \sum_y plan c K x y = drafts_prob (field_numbers F) (q c) x.
Hypothesis plan_target : forall c K y, (0 < K)%N -> \sum_(x : K.-tuple T) plan c K x y = p c y.
Notation choose := (fun c x =>
  otm_choose (field_numbers F) (tokens T) (q c) (plan c (size x)) res0 x).

Theorem otm_paths_lossless L K : (0 < K)%N ->
  lossless_call p L (draft_selection p q choose L K).
Proof.
have qc c : prob_row (q c) by split; [exact: q_row.1 | exact: q_row.2].
move=> K0; apply: draft_selection_lossless => //.
- move=> c x _; apply: (@otm_choose_dist _ _ (q c) (plan c (size x)) res0 (size x)) => //.
  by move=> x' xx; exact: plan_drafts.
- move=> c k f k0; rewrite drawE.
  transitivity (otm (field_numbers F) (tokens T) (q c) (plan c k) res0 k f).
    have dk : dist (fun xs => size xs = k) (several k (draw (q c))).
      exact: dist_several (dist_draw (qc c).1 (qc c).2).
    by apply: (dist_supp dk) => x xk; rewrite xk.
  move: f; apply/(@otm_lossless _ _ (p c) (q c) (plan c k) res0 k) => //.
  - by move=> x xk; exact: plan_drafts.
  - by move=> y; exact: plan_target.
Qed.
End OTMPaths.

(* K-SEQ along K paths, with one division factor for each text and number of  *)
(* drafts, which satisfies the inequality of Statement 3.5                    *)
Section KSeqPaths.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Variables (rho : seq T -> nat -> F) (ratio0 res0 : T -> F).
Hypotheses (p_row : is_row p) (q_row : is_row q) (ratio0_ge0 : forall t, 0 <= ratio0 t).
Hypothesis res0_row : prob_row res0.
Hypothesis rho_ge1 : forall c K, (0 < K)%N -> 1 <= rho c K.
Hypothesis rho_valid : forall c K, (0 < K)%N -> kseq_valid (p c) (q c) (rho c K) K.
Let rho_gt0 c K : (0 < K)%N -> 0 < rho c K.
Proof. by move=> /(rho_ge1 c); exact: lt_le_trans. Qed.
Notation tests c K := (kseq_tests (field_numbers F) (tokens T) (p c) (q c) (rho c K) ratio0 res0 K).

Lemma kseq_tests_dist c K x : (0 < K)%N -> dist (fun=> True) (tests c K x).
Proof.
move=> K0; have pc : prob_row (p c) by split; [exact: p_row.1 | exact: p_row.2].
have qc : prob_row (q c) by split; [exact: q_row.1 | exact: q_row.2].
have rr : prob_row (kseq_residual (field_numbers F) (tokens T) (p c) (q c) (rho c K) res0 K).
  by apply/kseq_program_iff => //; [exact: rho_gt0 | exact: rho_ge1 | exact: rho_valid].
elim: x => [|x1 x IH]; first by apply: dist_draw; [exact: rr.1 | exact: rr.2].
apply: (@dist_bind _ _ _ (fun=> True)) => [|[] _]; last exact: IH; last exact: dist_ret.
apply: dist_coin; rewrite /kseq_accept /= le_minr ler01 andbT le_minl lexx orbT andbT.
case: eqP => _; first exact: ratio0_ge0.
by rewrite divr_ge0 ?pc.1 // mulr_ge0 ?qc.1 // ltW // rho_gt0.
Qed.

Lemma kseq_tests_drawn c K n f : (0 < K)%N ->
  (x <- several n (draw (q c));; tests c K x) f
  = kseq_loop (field_numbers F) (tokens T) (p c) (q c) (rho c K) ratio0 res0 K n f.
Proof.
move=> K0; elim: n f => [//|n IH] f.
have dn : dist (fun xs => size xs = n) (several n (draw (q c))).
  exact: dist_several (dist_draw (q_row.1 c) (q_row.2 c)).
rewrite /bind severalS /= /bind !drawE; apply: eq_bigr => t _; congr (_ * _).
by rewrite !coinE -IH (dist_add dn) !(dist_scale dn) /ret (dist_const _ dn).
Qed.

Theorem kseq_paths_lossless L K : (0 < K)%N ->
  lossless_call p L (draft_selection p q (fun c x => tests c (size x) x) L K).
Proof.
move=> K0; apply: draft_selection_lossless => //.
- by move=> c [//|x xs] _; exact: kseq_tests_dist.
move=> c k f k0; have pc : prob_row (p c) by split; [exact: p_row.1 | exact: p_row.2].
have qc : prob_row (q c) by split; [exact: q_row.1 | exact: q_row.2].
have dk : dist (fun xs => size xs = k) (several k (draw (q c))).
  exact: dist_several (dist_draw qc.1 qc.2).
transitivity ((x <- several k (draw (q c));; tests c k x) f).
  by apply: (dist_supp dk) => x ->.
rewrite kseq_tests_drawn // drawE.
by apply: (@kseq_lossless _ _ (p c) (q c)) => //; [exact: rho_gt0 | exact: rho_valid].
Qed.
End KSeqPaths.
