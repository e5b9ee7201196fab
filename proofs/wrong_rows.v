(* Wrong target rows (8.17): what a verifier that is lossless for the rows r   *)
(* does to a target with the rows p, and by how much.                         *)
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

(* ---- the total variation distance of the output from the target             *)
(* loss a = P(a is accepted) times the distance of the two rows behind a      *)
Definition loss a : F := node_mass call a * ((\sum_t `|r a t - p a t|) / 2%:R).
Definition first_wrong a : bool := all (fun i => loss (take i a) == 0) (iota 0 (size a)).
Definition defect : F := total_variation L.+1 (continued p L call) (walk p L.+1 [::]).
(* half the error of the law of the first n tokens                            *)
Let level n : F := \sum_(a : n.-tuple T) `|prefix_error a| / 2%:R.

Lemma node_mass_ge0 a : 0 <= node_mass call a.
Proof. by apply: (dist_pos call_dist) => o; exact: ler0n. Qed.

Lemma loss_ge0 a : 0 <= loss a.
Proof. by rewrite mulr_ge0 ?node_mass_ge0 // divr_ge0 ?sumr_ge0 ?ler0n. Qed.

(* behind a the two rows agree, or a is not accepted                          *)
Lemma loss0 a t : loss a = 0 -> node_mass call a * (r a t - p a t) = 0.
Proof.
move=> /eqP; rewrite /loss !mulf_eq0 invr_eq0 pnatr_eq0 orbF => /orP[/eqP ->|]; first by rewrite mul0r.
rewrite psumr_eq0 // => /allP /(_ t); rewrite mem_index_enum normr_eq0 => /(_ isT) /eqP ->.
by rewrite mulr0.
Qed.

Lemma prefix_error0 : prefix_error [::] = 0.
Proof.
rewrite /prefix_error (_ : prefix_mass p [::] = 1) ?subrr // -(dist_one (continued_dist p_row)).
by apply: (dist_supp (continued_dist p_row)) => x _; rewrite prefix0s.
Qed.

Lemma first_wrong_error a : (size a <= L)%N -> first_wrong a -> prefix_error a = 0.
Proof.
elim/last_ind: a => [_ _|a t IH]; first exact: prefix_error0.
rewrite /first_wrong size_rcons => aL; rewrite -addn1 iota_add all_cat add0n /= andbT => /andP[first].
rewrite -cats1 takel_cat // take_size => /eqP la; rewrite cats1.
have same : first_wrong a = all (fun i => loss (take i (rcons a t)) == 0) (iota 0 (size a)).
  by apply: eq_in_all => i; rewrite mem_iota /= => ia; rewrite -cats1 takel_cat // ltnW.
rewrite wrong_rows_error ?(ltnW aL) // loss0 // addr0 IH ?mul0r ?(ltnW aL) //.
by rewrite same.
Qed.

(* one more token                                                             *)
Lemma error_le a : (size a <= L)%N ->
  \sum_t `|prefix_error (rcons a t)| / 2%:R <= `|prefix_error a| / 2%:R + loss a.
Proof.
move=> aL; rewrite /loss mulrA -!big_distrl -mulrDl ler_pmul2r ?invr_gt0 ?ltr0n //=.
rewrite -[X in X + _]mulr1 -(p_row.2 a) !big_distrr -big_split; apply: ler_sum => t _ /=.
rewrite wrong_rows_error //; apply: le_trans (ler_norm_add _ _) _.
by rewrite !normrM (ger0_norm (p_row.1 a t)) (ger0_norm (node_mass_ge0 a)).
Qed.

Lemma error_ge a : (size a <= L)%N ->
  `|prefix_error a| / 2%:R + (first_wrong a)%:R * loss a <= \sum_t `|prefix_error (rcons a t)| / 2%:R.
Proof.
move=> aL; rewrite -big_distrl /=; have [first|_] := boolP (first_wrong a).
  rewrite first_wrong_error // normr0 mul0r add0r mul1r /loss mulrA ler_pmul2r ?invr_gt0 ?ltr0n //.
  rewrite big_distrr; apply: ler_sum => t _ /=.
  by rewrite wrong_rows_error // first_wrong_error // mul0r add0r normrM (ger0_norm (node_mass_ge0 a)).
rewrite mul0r addr0 ler_pmul2r ?invr_gt0 ?ltr0n //; apply: le_trans (ler_norm_sum _ _ _).
under eq_bigr do rewrite wrong_rows_error //.
by rewrite big_split -!big_distrr /= sumrB p_row.2 r_row.2 subrr mulr0 addr0 mulr1.
Qed.

Lemma levelS n : level n.+1 = \sum_(a : n.-tuple T) \sum_t `|prefix_error (rcons a t)| / 2%:R.
Proof.
rewrite pair_bigA /= /level.
rewrite (reindex (fun z : n.-tuple T * T => [tuple of rcons z.1 z.2])) //=.
exists (fun b : n.+1.-tuple T => ([tuple of belast (thead b) (behead b)], last (thead b) (behead b))).
  move=> [a t] _; congr (_, _) => /=; last by case: a => [[|s a] ?] //=; rewrite last_rcons.
  by apply: val_inj; case: a => [[|s a] ?] //=; rewrite belast_rcons.
by move=> b _; apply: val_inj; rewrite /= -lastI [RHS](congr1 val (tuple_eta b)).
Qed.

Lemma level0 : level 0 = 0.
Proof.
rewrite /level (big_pred1 [tuple]) => [|a]; last by apply/esym/eqP; exact: tuple0.
by rewrite prefix_error0 normr0 mul0r.
Qed.

Lemma defectE : defect = level L.+1.
Proof.
rewrite /defect /total_variation big_distrl; apply: eq_bigr => b _; congr (`|_| / _).
have bL := size_tuple b; rewrite walk_law // bL eqxx mul1r /prefix_error; congr (_ - _).
apply: (dist_supp (continued_dist p_row)) => x xL.
by rewrite prefixE bL take_oversize ?xL.
Qed.

Theorem wrong_rows_defect_le : defect <= \sum_(n < L.+1) \sum_(a : n.-tuple T) loss a.
Proof.
rewrite defectE; elim: {-2}L.+1 (leqnn L.+1) => [_|n IH nL]; first by rewrite level0 big_ord0.
rewrite levelS big_ord_recr /=; apply: le_trans (ler_add (IH (ltnW nL)) (lexx _)).
by rewrite -big_split; apply: ler_sum => a _; rewrite error_le ?size_tuple.
Qed.

(* the loss of the first contexts with wrong rows is never made good          *)
Theorem wrong_rows_defect_ge :
  \sum_(n < L.+1) \sum_(a : n.-tuple T | first_wrong a) loss a <= defect.
Proof.
rewrite defectE; elim: {-2}L.+1 (leqnn L.+1) => [_|n IH nL]; first by rewrite level0 big_ord0.
rewrite levelS big_ord_recr /=; apply: le_trans (ler_add (IH (ltnW nL)) (lexx _)) _.
rewrite big_mkcond -big_split; apply: ler_sum => a _.
by apply: le_trans (error_ge _); rewrite ?size_tuple //; case: first_wrong; rewrite ?mul1r ?mul0r.
Qed.

(* equality if no wrong context is behind another one                         *)
Corollary wrong_rows_defect : (forall a, loss a != 0 -> first_wrong a) ->
  defect = \sum_(n < L.+1) \sum_(a : n.-tuple T) loss a.
Proof.
move=> anti; apply/eqP; rewrite eq_le wrong_rows_defect_le /=.
apply: le_trans wrong_rows_defect_ge; rewrite le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_bigr => n _; rewrite [RHS]big_mkcond; apply: eq_bigr => a _.
by case: ifP => // /negbT first; apply/eqP; apply: contraNT first => /anti.
Qed.
End Prefixes.
