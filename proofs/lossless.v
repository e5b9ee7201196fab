(* Token and block verification are lossless.                                *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lossless.
Variables (F : realFieldType) (T : finType) (p q : model F T) (u : convention F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Let p_ge0 c t : 0 <= p c t := p_row.1 c t.
Let q_ge0 c t : 0 <= q c t := q_row.1 c t.
Let p1 c : \sum_t p c t = 1 := p_row.2 c.
Let q1 c : \sum_t q c t = 1 := q_row.2 c.

(* ---- one position ---- *)
Lemma gain_ge0 c w t : 0 <= gain p q c w t.
Proof. by rewrite gainE le_maxr lexx orbT. Qed.

Lemma total_gain_ge0 c w : 0 <= total_gain p q c w.
Proof. by rewrite total_gainE; apply: sumr_ge0 => t _; exact: gain_ge0. Qed.

(* q min(w p/q, 1) = w p - (w p - q)_+, also where q = 0 *)
Lemma accepted c w t :
  0 <= w -> q c t * next_weight p q u c w t = w * p c t - gain p q c w t.
Proof.
move=> w0; rewrite next_weightE gainE ratioE.
case: eqP => [->|/eqP qn0].
  by rewrite mul0r subr0 max_l ?subrr // mulr_ge0.
rewrite minr_pmulr // mulr1.
have -> : q c t * (w * (p c t / q c t)) = w * p c t by field.
case: (leP (w * p c t) (q c t)) => le.
  by rewrite max_r ?subr0 // subr_le0.
by rewrite max_l ?subr_ge0 ?(ltW le) //; ring.
Qed.

Lemma next_weight_ge0 c w t : 0 <= w -> q c t != 0 -> 0 <= next_weight p q u c w t.
Proof.
move=> w0 qn0; rewrite next_weightE le_minr ler01 andbT mulr_ge0 //.
by rewrite ratioE (negbTE qn0) divr_ge0.
Qed.

Lemma next_weight_le1 c w t : next_weight p q u c w t <= 1.
Proof. by rewrite next_weightE le_minl lexx orbT. Qed.

Lemma sum_accepted c w :
  0 <= w -> \sum_t q c t * next_weight p q u c w t = w - total_gain p q c w.
Proof.
move=> w0; under eq_bigr do rewrite accepted //.
by rewrite big_split /= -big_distrr /= p1 mulr1 sumrN total_gainE.
Qed.

(* S times the residual is the gain, also where S = 0 *)
Lemma gain_residual c w t : total_gain p q c w * residual p q u c w t = gain p q c w t.
Proof.
rewrite residualE; case: eqP => [S0|/eqP Sn0]; last by field.
rewrite S0 mul0r; move/eqP: S0; rewrite total_gainE psumr_eq0; last by move=> *; exact: gain_ge0.
by move/allP=> /(_ t); rewrite mem_index_enum => /(_ isT) /eqP.
Qed.

(* (1 - w + S) h = S, also where the denominator is 0 *)
Lemma gain_accept_prob c w : w <= 1 -> (1 - w + total_gain p q c w) * accept_prob p q u c w = total_gain p q c w.
Proof.
move=> w1; rewrite accept_probE; case: eqP => [d0|/eqP dn0].
  have S0 : total_gain p q c w = 0.
    by apply/eqP; rewrite eq_le total_gain_ge0 andbT -d0 -addrA ler_addl subr_ge0.
  have -> : 1 - w + total_gain p q c w = total_gain p q c w + 1 - w by ring.
  by rewrite d0 mul0r S0.
by field.
Qed.

(* the expectation of f when the target goes on behind c for n tokens *)
Definition cont n c (f : seq T -> F) := walk p n c (fun u => f (c ++ u)).

Lemma contS n c f : cont n.+1 c f = \sum_t p c t * cont n (rcons c t) f.
Proof.
rewrite /cont walkS; apply: eq_bigr => t _; congr (_ * _).
by apply: walk_ext => x _; rewrite cat_rcons.
Qed.

(* the expectation of f after the loop has stopped at s with weight w *)
Definition value L f s w :=
  correction p q u L s w (fun y => cont (L - size s) (rcons s y) f).

Lemma value_end L f s w : size s = L -> value L f s w = cont 1 s f.
Proof.
by move=> sL; rewrite /value correctionE sL eqxx subnn contS drawE.
Qed.

Lemma value_mid L f s w n : (size s + n.+1)%N = L ->
  total_gain p q s w * value L f s w = \sum_t gain p q s w t * cont n.+1 (rcons s t) f.
Proof.
move=> sL; rewrite /value correctionE.
have -> : (size s == L) = false.
  by rewrite -sL -[X in X == _]addn0 eqn_add2l.
rewrite -sL addKn drawE big_distrr /=.
by apply: eq_bigr => t _; rewrite mulrA gain_residual.
Qed.

(* ---- token verification ---- *)
Lemma token_main L f n c : (size c + n)%N = L ->
  walk q n c (fun x => token_loop p q u c x (fun s => value L f s 1)) = cont n.+1 c f.
Proof.
elim: n c => [|n IH] c cL.
  by transitivity (value L f c 1); rewrite // value_end // -cL addn0.
rewrite walkS.
have E t : walk q n (rcons c t)
    (fun x => token_loop p q u c (t :: x) (fun s => value L f s 1)) =
    Num.min (ratio p q u c t) 1 * cont n.+1 (rcons c t) f
    + (1 - Num.min (ratio p q u c t) 1) * value L f c 1.
  rewrite /= /bind /coin walkD !walkZ IH ?size_rcons ?addSnnS //.
  by rewrite /ret walk1.
under eq_bigr => t _ do rewrite E -[ratio p q u c t]mul1r mulrDr !mulrA mulrBr mulr1.
rewrite big_split /= -[X in _ + X]big_distrl /= sumrB sum_accepted ?ler01 // q1.
have -> : 1 - (1 - total_gain p q c 1) = total_gain p q c 1 by ring.
rewrite (value_mid f 1 cL) -big_split contS /=; apply: eq_bigr => t _.
by rewrite accepted ?ler01 // mul1r -mulrDl subrK.
Qed.

Theorem token_lossless L : lossless p q L (token p q u L).
Proof. by move=> f; rewrite -[RHS]/(cont L.+1 [::] f) -(@token_main L) ?add0n. Qed.

(* ---- block verification ---- *)
(* What is used of the final value k(s, w): Psi is a martingale of the       *)
(* target from c0 on; k = Psi at depth L; S k = sum of gain * Psi before.    *)
Section BlockMain.
Variables (L : nat) (c0 : seq T) (k : seq T * F -> F) (Psi : seq T -> F).
Hypothesis PsiS : forall s, prefix c0 s -> (size s < L)%N ->
  Psi s = \sum_t p s t * Psi (rcons s t).
Hypothesis k_end : forall s w, prefix c0 s -> size s = L -> k (s, w) = Psi s.
Hypothesis k_mid : forall s w, prefix c0 s -> (size s < L)%N ->
  total_gain p q s w * k (s, w) = \sum_t gain p q s w t * Psi (rcons s t).

(* the loop after X_i was drafted, with its own coin *)
Definition step c x w best : F :=
  let h := if x is [::] then w else accept_prob p q u c w in
  h * block_loop p q u c x w (c, w) k + (1 - h) * block_loop p q u c x w best k.

Lemma block_loop_cons c t x w best :
  block_loop p q u c (t :: x) w best k = step (rcons c t) x (next_weight p q u c w t) best.
Proof. by []. Qed.

Lemma block_main n c w best : (size c + n)%N = L -> prefix c0 c -> 0 <= w <= 1 ->
  walk q n c (fun x => step c x w best) = w * Psi c + (1 - w) * k best.
Proof.
elim: n c w best => [|n IH] c w best cL c0c /andP[w0 w1].
  transitivity (w * k (c, w) + (1 - w) * k best); first by [].
  by rewrite k_end // -cL addn0.
have cltL : (size c < L)%N by rewrite -cL -[X in (X < _)%N]addn0 ltn_add2l.
(* the loop behind c, averaged over the draft *)
have B best' : walk q n.+1 c (fun x => block_loop p q u c x w best' k) =
    \sum_t (w * p c t - gain p q c w t) * Psi (rcons c t)
    + (1 - w + total_gain p q c w) * k best'.
  rewrite walkS.
  have E t : q c t * walk q n (rcons c t)
        (fun x => block_loop p q u c (t :: x) w best' k) =
      q c t * next_weight p q u c w t * Psi (rcons c t)
      + (q c t - q c t * next_weight p q u c w t) * k best'.
    have [-> | qn0] := eqVneq (q c t) 0; first by rewrite !mul0r subrr mul0r addr0.
    rewrite (IH (rcons c t) (next_weight p q u c w t)); first by ring.
    - by rewrite size_rcons addSnnS.
    - exact: prefix_trans c0c (prefix_rcons _ _).
    - by rewrite next_weight_ge0 // next_weight_le1.
  under eq_bigr do rewrite E.
  rewrite big_split /= -[X in _ + X]big_distrl /= sumrB sum_accepted // q1.
  congr (_ + _ * _); last by ring.
  by apply: eq_bigr => t _; rewrite accepted.
have -> : walk q n.+1 c (fun x => step c x w best) =
    accept_prob p q u c w * walk q n.+1 c (fun x => block_loop p q u c x w (c, w) k)
    + (1 - accept_prob p q u c w) * walk q n.+1 c (fun x => block_loop p q u c x w best k).
  rewrite -!walkZ -walkD; apply: walk_ext => -[//|t x] _; exact: erefl.
rewrite !B.
set A := \sum_t _.
have kc : total_gain p q c w * k (c, w) = w * Psi c - A.
  rewrite k_mid // PsiS // big_distrr /= -sumrB; apply: eq_bigr => t _.
  by rewrite mulrBl mulrA subKr.
have hS := gain_accept_prob c w1.
have -> : accept_prob p q u c w * (A + (1 - w + total_gain p q c w) * k (c, w)) +
  (1 - accept_prob p q u c w) * (A + (1 - w + total_gain p q c w) * k best) =
  A + ((1 - w + total_gain p q c w) * accept_prob p q u c w) * k (c, w)
  + (1 - w + total_gain p q c w - (1 - w + total_gain p q c w) * accept_prob p q u c w) * k best by ring.
by rewrite hS kc; ring.
Qed.
End BlockMain.

Theorem block_lossless L : lossless p q L (block p q u L).
Proof.
move=> f; rewrite -[RHS]/(cont L.+1 [::] f).
case: L => [|L]; first by rewrite -(@value_end 0 f [::] 1).
pose k (b : seq T * F) := value L.+1 f b.1 b.2.
rewrite -[LHS]/(walk q L.+1 [::] (fun x => block_loop p q u [::] x 1 ([::], 1) k)).
rewrite walkS.
have E t : q [::] t * walk q L [:: t]
      (fun x => block_loop p q u [::] (t :: x) 1 ([::], 1) k) =
    (1 * p [::] t - gain p q [::] 1 t) * cont L.+1 [:: t] f
    + (q [::] t - q [::] t * next_weight p q u [::] 1 t) * k ([::], 1).
  have [q0 | qn0] := eqVneq (q [::] t) 0.
    by rewrite -accepted ?ler01 // q0 !mul0r subrr mul0r addr0.
  rewrite -accepted ?ler01 //.
  have := @block_main L.+1 [::] k (fun c => cont (L.+2 - size c) c f) _ _ _
            L [:: t] (next_weight p q u [::] 1 t) ([::], 1).
  move=> ->; first by rewrite /= subn1 mulrDr !mulrA mulrBr mulr1.
  - move=> s _ sL /=; rewrite subSn 1?ltnW // contS; apply: eq_bigr => y _.
    by rewrite size_rcons subSS.
  - by move=> s w _ sL; rewrite /k /= value_end // sL subSnn.
  - move=> s w _ sL; rewrite /k /=.
    rewrite (@value_mid _ _ _ _ (L - size s)); last by rewrite addnS subnKC.
    by apply: eq_bigr => y _; rewrite size_rcons subSS subSn.
  - by [].
  - by [].
  - by rewrite next_weight_ge0 ?ler01 // next_weight_le1.
under eq_bigr do rewrite E.
rewrite big_split /= -[X in _ + X]big_distrl /= sumrB sum_accepted ?ler01 // q1.
have -> : 1 - (1 - total_gain p q [::] 1) = total_gain p q [::] 1 by ring.
rewrite (@value_mid _ _ _ _ L) // -big_split contS /=.
by apply: eq_bigr => t _; rewrite mul1r -mulrDl subrK.
Qed.

End Lossless.
