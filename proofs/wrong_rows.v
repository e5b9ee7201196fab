(* Wrong target rows (8.17): what a verifier that is lossless for the rows r   *)
(* does to a target with the rows p.                                          *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Prefixes.
Variables (F : realFieldType) (T : finType) (L : nat) (call : M F (seq T * T)).
Hypothesis call_dist : dist (fun o => size o.1 <= L)%N call.
Implicit Types (r p : model F T) (a s : seq T) (t y : T).

(* P(the output, continued by r, starts with a)                               *)
Definition prefix_mass r a : F := continued r L call (fun b => (prefix a b)%:R).

Definition starts r s y a : F :=
  walk r (L - size s) (rcons s y) (fun u => (prefix a (rcons s y ++ u))%:R).

Lemma starts_step r s y a t : is_row r -> (size s <= L)%N -> (size a <= L)%N ->
  starts r s y (rcons a t) - r a t * starts r s y a
  = (prefix a s)%:R * ((prefix (rcons a t) (rcons s y))%:R - r a t).
Proof.
move=> r_row sL aL; case as_: (prefix a s).
  rewrite [starts r s y a](phi_accepted r_row) // mulr1 mul1r; congr (_ - _).
  rewrite -[RHS](walk1 r_row.2 (L - size s) (rcons s y)); apply: walk_ext => u _.
  rewrite !prefixE takel_cat // !size_rcons ltnS; exact: size_prefix.
rewrite mul0r; have [a_s|s_a] := leqP (size a) (size s).
  have Z b : prefix a b -> starts r s y b = 0.
    move=> ab; rewrite -[RHS](walk0 r (L - size s) (rcons s y)); apply: walk_ext => u _.
    case bs: (prefix b _) => //; have := prefix_trans ab bs.
    by rewrite prefixE -cats1 -catA takel_cat // -prefixE as_.
  by rewrite !Z ?prefix_rcons ?prefix_refl // mulr0 subr0.
rewrite /starts !phi_stopped ?size_rcons ?ltnS ?(ltnW s_a) ?(leqW aL) //.
have [/prefixP [b ab] | nsya] := boolP (prefix (rcons s y) a).
  rewrite ab rcons_cat !prefix_prefix -(size_rcons s y) !drop_size_cat // path_prob_rcons.
  by rewrite !mul1r mulrC subrr.
rewrite mul0r mulr0 subr0 (_ : prefix _ _ = false) ?mul0r //.
apply/negP => /prefixP[b]; case/lastP: b => [|b t'].
  by rewrite cats0 => E; move: s_a; rewrite -ltnS -(size_rcons a t) E size_rcons ltnn.
by rewrite -rcons_cat => /rcons_inj[E _]; rewrite E prefix_prefix in nsya.
Qed.

(* the next token behind an accepted a, whatever the continuation             *)
Lemma prefix_mass_step r a t : is_row r -> (size a <= L)%N ->
  prefix_mass r (rcons a t) - r a t * prefix_mass r a
  = call (fun o => (prefix a o.1 && prefix (rcons a t) (rcons o.1 o.2))%:R)
    - r a t * node_mass call a.
Proof.
move=> r_row aL; rewrite -!mulNr -!(dist_scale call_dist) -!(dist_add call_dist).
apply: (dist_supp call_dist) => -[s y] /= sL.
rewrite !mulNr -[LHS]/(starts r s y (rcons a t) - r a t * starts r s y a) starts_step //.
by case: (prefix a s); rewrite ?mul0r ?mulr0 ?subr0 ?mul1r ?mulr1.
Qed.

Lemma continued_dist r : is_row r -> dist (fun b => size b = L.+1) (continued r L call).
Proof.
move=> r_row; apply: (dist_bind2 call_dist) => -[s y] /= sL.
apply: (dist_bind (dist_walk _ _ r_row)) => u uL; apply: dist_ret.
by rewrite size_cat uL size_rcons addSn subnKC.
Qed.

Variables (r p : model F T).
Hypotheses (r_row : is_row r) (p_row : is_row p) (r_lossless : lossless_call r L call).

(* the error of the law of the output                                         *)
Definition prefix_error a : F := prefix_mass p a - path_prob p [::] a.

Theorem wrong_rows_error a t : (size a <= L)%N ->
  prefix_error (rcons a t) = prefix_error a * p a t + node_mass call a * (r a t - p a t).
Proof.
move=> aL; have R : prefix_mass r (rcons a t) - r a t * prefix_mass r a = 0.
  rewrite /prefix_mass !r_lossless !walk_prefix ?size_rcons // ?leqW //.
  by rewrite path_prob_rcons mulrC subrr.
have := prefix_mass_step t p_row aL; move: R; rewrite prefix_mass_step //.
rewrite /prefix_error path_prob_rcons /=; set x := call _; set m := prefix_mass p (rcons a t).
move=> /eqP; rewrite subr_eq0 => /eqP ->.
by move=> /eqP; rewrite subr_eq => /eqP ->; ring.
Qed.

(* lossless if and only if the rows are right behind every accepted prefix    *)
Theorem wrong_rows_lossless : lossless_call p L call <->
  forall a t, (size a <= L)%N -> node_mass call a * (r a t - p a t) = 0.
Proof.
split=> [right a t aL|same f].
  have E b : (size b <= L.+1)%N -> prefix_error b = 0.
    by move=> bL; rewrite /prefix_error /prefix_mass right walk_prefix // subrr.
  have := wrong_rows_error t aL; rewrite !E ?size_rcons // ?leqW //.
  by rewrite mul0r add0r.
have E b : (size b <= L.+1)%N -> prefix_error b = 0.
  elim/last_ind: b => [_|b t IH bL].
    suff E0 : prefix_mass p [::] = 1 by rewrite /prefix_error E0 subrr.
    rewrite -(dist_one (continued_dist p_row)).
    by apply: (dist_supp (continued_dist p_row)) => x _; rewrite prefix0s.
  rewrite size_rcons in bL.
  by rewrite wrong_rows_error // IH 1?ltnW // same // mul0r addr0.
rewrite (dist_tuple _ (continued_dist p_row)) walk_sum; apply: eq_bigr => b _; congr (_ * _).
have bL : (size b <= L.+1)%N by rewrite size_tuple.
have /eqP := E b bL; rewrite subr_eq0 => /eqP <-.
apply: (dist_supp (continued_dist p_row)) => x xL.
by rewrite prefixE size_tuple take_oversize ?xL.
Qed.
End Prefixes.
