(* Greedy block verification: its node masses, and that its distribution      *)
(* modification makes it lossless (block2024 Appendix C; Statements 4.4, 4.5). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal prefix_tests.
From Spectheory Require Import spec.greedy_block.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Arguments greedy_block.greedy_weight : simpl never.
Arguments greedy_block.greedy_accept : simpl never.
Arguments greedy_block.total_loss : simpl never.
Arguments greedy_block.excess : simpl never.
Arguments greedy_block.modified : simpl never.

Section GreedyBlock.
Variables (F : realFieldType) (T : finType) (p q : model F T) (u : convention F T) (L : nat).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Notation greedy_weight := (greedy_weight (field_numbers F) p q u).
Notation total_loss := (total_loss (field_numbers F) (tokens T) p q).
Notation greedy_accept := (greedy_accept (field_numbers F) (tokens T) p q u).
Notation loop := (greedy_block_loop (field_numbers F) (tokens T) p q u).
Notation greedy_block := (greedy_block (field_numbers F) (tokens T) p q u L).
Notation excess := (excess (field_numbers F) p q).
Notation modified := (modified (field_numbers F) (tokens T) p q u).
Notation P a := (path_prob p [::] a).
Notation Q a := (path_prob q [::] a).
Implicit Types (a c s x : seq T) (t y : T).

Fixpoint weight_along c (w : F) a : F :=
  if a is t :: a' then weight_along (rcons c t) (greedy_weight c w t) a' else w.
Definition g a : F := weight_along [::] 1 a.

Lemma g_rcons a t : g (rcons a t) = g a * ratio p q u a t.
Proof.
suff H c v : weight_along c v (rcons a t) = weight_along c v a * ratio p q u (c ++ a) t by exact: H.
elim: a c v => [|s a IH] c v /=; first by rewrite cats0.
by rewrite IH cat_rcons.
Qed.

(* p~ is the ratio of the probabilities of whole texts                        *)
Lemma g_mass a : Q a != 0 -> Q a * g a = P a.
Proof.
elim/last_ind: a => [|a t IH]; first by rewrite /g /= mulr1.
rewrite !path_prob_rcons cat0s mulf_eq0 negb_or => /andP[a0 t0].
by rewrite g_rcons ratioE (negbTE t0) -(IH a0); field.
Qed.

Lemma g_ge0 a : Q a != 0 -> 0 <= g a.
Proof.
move=> a0; have Qa : 0 < Q a by rewrite lt_def a0 path_prob_ge0.
by rewrite -(pmulr_rge0 _ Qa) g_mass // path_prob_ge0.
Qed.

Let w a : F := Num.min (g a) 1.
Let accept a : F := if size a == L then w a else greedy_accept a (g a).

Lemma loop_tests f c x best : (size c + size x)%N = L ->
  loop c x (g c) (best, g best) f = tests_loop accept c x best (fun s => f (s, g s)).
Proof.
elim: x c best => [//|t x IH] c best cx; rewrite /= /bind -/(loop _ _ _ _).
have -> : greedy_weight c (g c) t = g (rcons c t) by rewrite g_rcons.
have sE : (size (rcons c t) + size x)%N = L by rewrite size_rcons addSnnS.
have -> : (if x is [::] then Num.min (g (rcons c t)) 1 else greedy_accept (rcons c t) (g (rcons c t)))
    = accept (rcons c t).
  rewrite /accept -sE; case: (x) => [|t' x'] /=; first by rewrite addn0 eqxx.
  by rewrite -[X in X == _]addn0 eqn_add2l.
by rewrite !coinE !(IH (rcons c t)).
Qed.

(* min(p(a), q(a)), the mass of the accepted prefixes that start with a       *)
Let mu a : F := Num.min (P a) (Q a).

Lemma mu_w a : mu a = Q a * w a.
Proof.
have Q0 := path_prob_ge0 q_row [::] a; have P0 := path_prob_ge0 p_row [::] a.
have [q0|q0] := eqVneq (Q a) 0; first by rewrite /mu q0 mul0r min_r.
by rewrite /w minr_pmulr // g_mass // mulr1.
Qed.

Lemma mu_longer c : \sum_t mu (rcons c t) = Q c * longer q w c.
Proof.
rewrite /longer big_distrr /=; apply: eq_bigr => t _.
by rewrite mu_w path_prob_rcons cat0s mulrA.
Qed.

Lemma longer_min c : Q c != 0 -> longer q w c = \sum_t Num.min (g c * p c t) (q c t).
Proof.
move=> c0; apply: eq_bigr => t _; rewrite /w g_rcons ratioE.
have [->|t0] := eqVneq (q c t) 0; first by rewrite mul0r min_r // mulr_ge0 ?g_ge0 ?p_row.1.
rewrite minr_pmulr ?q_row.1 // mulr1; congr Num.min.
by field.
Qed.

Lemma min_gain c v : \sum_t Num.min (v * p c t) (q c t) = v - total_gain p q c v.
Proof.
rewrite -[X in X - _]mulr1 -(p_row.2 c) big_distrr total_gainE -sumrB; apply: eq_bigr => t _ /=.
rewrite gainE; case: (leP (v * p c t) (q c t)) => le; first by rewrite max_r ?subr0 // subr_le0.
by rewrite max_l ?subr_ge0 ?(ltW le) // subKr.
Qed.

Lemma min_loss c v : \sum_t Num.min (v * p c t) (q c t) = 1 - total_loss c v.
Proof.
rewrite -(q_row.2 c) /greedy_block.total_loss sumE -sumrB; apply: eq_bigr => t _ /=.
case: (leP (v * p c t) (q c t)) => le; first by rewrite max_l ?subr_ge0 // subKr.
by rewrite max_r ?subr0 // subr_le0 ltW.
Qed.

Lemma loss_ge0 c v : 0 <= total_loss c v.
Proof. by rewrite /greedy_block.total_loss sumE; apply: sumr_ge0 => t _; rewrite le_maxr lexx orbT. Qed.

Lemma accept_mid c : (size c < L)%N -> Q c != 0 -> (1 - longer q w c) * accept c = w c - longer q w c.
Proof.
move=> cL c0; rewrite /accept ltn_eqF // longer_min //; set m := \sum_t _.
have mG : m = g c - total_gain p q c (g c) by exact: min_gain.
have mL : m = 1 - total_loss c (g c) by exact: min_loss.
have -> : 1 - m = total_loss c (g c) by rewrite mL; ring.
have -> : w c - m = Num.min (total_gain p q c (g c)) (total_loss c (g c)).
  rewrite (_ : total_gain _ _ _ _ = g c - m); last by rewrite mG; ring.
  rewrite (_ : total_loss _ _ = 1 - m); last by rewrite mL; ring.
  by rewrite /w; case: (leP (g c) 1) => le;
    [rewrite min_l // ler_add2r | rewrite min_r // ler_add2r ltW].
rewrite /greedy_block.greedy_accept /=; case: eqP => [l0|/eqP l0].
  by rewrite l0 mul0r min_r // total_gain_ge0.
rewrite minr_pmulr ?loss_ge0 // mulr1; congr Num.min.
by field.
Qed.

Lemma accept_end c : size c = L -> Q c != 0 -> accept c = w c.
Proof. by move=> cL _; rewrite /accept cL eqxx. Qed.

Lemma w_start : w [::] = 1.
Proof. by rewrite /w /g /= minxx. Qed.

(* the law of the call                                                        *)
Lemma greedy_stops (f : seq T * T -> F) : iteration q L greedy_block f =
  stops q w (fun s => correction p q u L s (g s) (fun y => f (s, y))) L [::].
Proof.
rewrite -(tests_stops q_row w_start accept_end accept_mid); apply: walk_ext => x xL.
exact: (@loop_tests (fun b => correction p q u L b.1 b.2 (fun y => f (b.1, y))) [::] x [::] xL).
Qed.

Section Proper.
Hypothesis u_proper : proper u.

Theorem greedy_block_node_mass a : (size a <= L)%N ->
  node_mass (iteration q L greedy_block) a = Num.min (P a) (Q a).
Proof.
move=> aL; rewrite /node_mass greedy_stops -[RHS]/(mu a) mu_w.
rewrite -(@stops_prefix _ _ q w L [::] a aL).
have E s : correction p q u L s (g s) (fun=> (prefix a s)%:R) = (prefix a s)%:R.
  have d : dist (fun=> True) (correction p q u L s (g s)) by exact: dist_correction.
  by rewrite -[RHS]mulr1 -(dist_one d) -(dist_scale d); apply: (dist_supp d) => y _; rewrite mulr1.
by apply: stops_ext => s _; exact: E.
Qed.
End Proper.

(* ---- the modification                                                      *)
Lemma excessE a : excess a = P a - mu a.
Proof.
rewrite /greedy_block.excess /mu /=; case: (leP (P a) (Q a)) => le.
  by rewrite max_r ?subrr // subr_le0.
by rewrite max_l // subr_ge0 ltW.
Qed.

Lemma excess_ge0 a : 0 <= excess a.
Proof. by rewrite excessE subr_ge0 /mu le_minl lexx. Qed.

Lemma sum_P c : \sum_t P (rcons c t) = P c.
Proof. by under eq_bigr do rewrite path_prob_rcons cat0s; rewrite -big_distrr /= p_row.2 mulr1. Qed.
Lemma sum_Q c : \sum_t Q (rcons c t) = Q c.
Proof. by under eq_bigr do rewrite path_prob_rcons cat0s; rewrite -big_distrr /= q_row.2 mulr1. Qed.

Let E c : F := \sum_t excess (rcons c t).
Lemma modifiedE c t : modified c t = if E c == 0 then res0 u c t else excess (rcons c t) / E c.
Proof. by rewrite /greedy_block.modified sumE. Qed.

Lemma E_modified c t : E c * modified c t = excess (rcons c t).
Proof.
rewrite modifiedE; case: eqP => [E0|/eqP E0]; last by rewrite mulrCA divff // mulr1.
by rewrite E0 mul0r (psumr_eq0P (fun t _ => excess_ge0 (rcons c t)) E0).
Qed.

Let d c : F := mu c - \sum_t mu (rcons c t).
Lemma d_ge0 c : 0 <= d c.
Proof.
rewrite subr_ge0 le_minr -{1}(sum_P c) -(sum_Q c).
by apply/andP; split; apply: ler_sum => t _; rewrite /mu le_minl lexx ?orbT.
Qed.

Lemma E_split c : E c = excess c + d c.
Proof.
rewrite excessE /d /E; under eq_bigr do rewrite excessE.
by rewrite sumrB sum_P; ring.
Qed.

(* the rows of Eq. 31 are the residual of Algorithm 4                         *)
Lemma residual_modified c t : Q c != 0 -> E c != 0 -> residual p q u c (g c) t = modified c t.
Proof.
move=> c0 E0; have gE y : gain p q c (g c) y = excess (rcons c y) / Q c.
  have Qc : 0 < Q c by rewrite lt_def c0 path_prob_ge0.
  apply: (mulfI c0); rewrite mulrCA divff // mulr1 gainE maxr_pmulr ?(ltW Qc) // mulr0.
  rewrite /greedy_block.excess /= !path_prob_rcons !cat0s; congr Num.max.
  by rewrite mulrBr mulrA g_mass.
have -> : residual p q u c (g c) t = if total_gain p q c (g c) == 0 then res0 u c t
    else gain p q c (g c) t / total_gain p q c (g c) by [].
have -> : total_gain p q c (g c) = E c / Q c.
  by rewrite total_gainE; under eq_bigr do rewrite gE; rewrite -big_distrl.
rewrite modifiedE (negbTE E0) mulf_eq0 (negbTE E0) invr_eq0 (negbTE c0) gE.
by field; rewrite E0 c0.
Qed.

(* Lemma 8: the first L tokens have the target's law                          *)
Theorem greedy_block_lossless f :
  greedy_block_text (field_numbers F) (tokens T) p q u L f = walk p L [::] f.
Proof.
pose tail n c := walk modified n c (fun z => f (c ++ z)).
pose k s := correction p q u L s (g s) (fun y =>
  walk modified (L - (size s).+1) (rcons s y) (fun z => f (take L (rcons s y ++ z)))).
rewrite -[LHS]/(iteration q L greedy_block (fun o =>
  walk modified (L - (size o.1).+1) (rcons o.1 o.2) (fun z => f (take L (rcons o.1 o.2 ++ z))))).
rewrite greedy_stops -/k.
have k_end s : size s = L -> k s = f s.
  move=> sL; rewrite /k correctionE sL eqxx drawE -[RHS]mul1r -(p_row.2 s) big_distrl /=.
  apply: eq_bigr => y _; rewrite (_ : (L - L.+1 = 0)%N); last by apply/eqP; rewrite subn_eq0.
  by rewrite walk0E cats0 -cats1 take_size_cat.
have k_mid s n : (size s + n.+1)%N = L -> Q s != 0 -> E s != 0 -> k s = tail n.+1 s.
  move=> sL s0 E0; have sltL : (size s < L)%N by rewrite -sL addnS ltnS leq_addr.
  rewrite /k correctionE ltn_eqF // drawE /tail walkS; apply: eq_bigr => y _.
  rewrite residual_modified //; congr (_ * _).
  rewrite (_ : (L - (size s).+1 = n)%N); last by rewrite -sL addnS subSS addKn.
  by apply: walk_ext => z zn; rewrite cat_rcons take_oversize // size_cat /= zn -sL.
suff H n c : (size c + n)%N = L ->
    Q c * stops q w k n c + excess c * tail n c = P c * walk p n c (fun z => f (c ++ z)).
  have e0 : excess [::] = 0 by rewrite excessE /mu minxx subrr.
  by have := H L [::] erefl; rewrite e0 mul0r addr0 !mul1r.
elim: n c => [|n IH] c cL.
  have cL' : size c = L by rewrite -cL addn0.
  rewrite /= k_end // /tail !walk0E cats0 mulrA -mu_w -mulrDl excessE.
  by rewrite addrC subrK /ret cats0.
have step : d c * k c + excess c * tail n.+1 c = \sum_t excess (rcons c t) * tail n (rcons c t).
  have tailS : E c * tail n.+1 c = \sum_t excess (rcons c t) * tail n (rcons c t).
    rewrite /tail walkS big_distrr /=; apply: eq_bigr => t _; rewrite mulrA E_modified; congr (_ * _).
    by apply: walk_ext => z _; rewrite cat_rcons.
  rewrite -tailS E_split (mulrDl (excess c)) addrC; congr (_ + _).
  have [E0|E0] := eqVneq (E c) 0.
    move/eqP: E0; rewrite E_split paddr_eq0 ?excess_ge0 ?d_ge0 // => /andP[_ /eqP ->].
    by rewrite !mul0r.
  have [c0|c0] := eqVneq (Q c) 0; last by rewrite (@k_mid c n).
  have -> : d c = 0; last by rewrite !mul0r.
  by rewrite /d mu_longer mu_w c0 !mul0r subrr.
have -> : Q c * stops q w k n.+1 c = d c * k c + \sum_t Q (rcons c t) * stops q w k n (rcons c t).
  rewrite /= mulrDr mulrA mulrBr -mu_w -mu_longer -/(d c) big_distrr /=; congr (_ + _).
  by apply: eq_bigr => t _; rewrite path_prob_rcons cat0s mulrA.
rewrite addrAC step -big_split walkS big_distrr /=; apply: eq_bigr => t _.
rewrite addrC IH ?size_rcons ?addSnnS // path_prob_rcons cat0s -mulrA; congr (_ * (_ * _)).
by apply: walk_ext => z _; rewrite cat_rcons.
Qed.
End GreedyBlock.
