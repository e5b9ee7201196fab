(* K-SEQ at one position (spectr2023 Algorithm 2, Theorem 1; Statement 3.5).  *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field recursive.
From Spectheory Require Import spec.kseq.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Arguments beta : simpl never.
Arguments kseq_accept : simpl never.
Arguments kseq_residual : simpl never.

Section KSeq.
Variables (F : realFieldType) (T : finType) (p q : T -> F) (rho : F) (ratio0 res0 : T -> F).
Hypotheses (p_row : prob_row p) (q_row : prob_row q) (rho_gt0 : 0 < rho).
Notation beta := (beta (field_numbers F) (tokens T) p q rho).
Notation missed := (missed (field_numbers F) (tokens T) p q rho).
Notation accept := (kseq_accept (field_numbers F) p q rho ratio0).
Notation residual := (kseq_residual (field_numbers F) (tokens T) p q rho res0).
Notation loop := (kseq_loop (field_numbers F) (tokens T) p q rho ratio0 res0).
Notation kseq := (kseq (field_numbers F) (tokens T) p q rho ratio0 res0).
Let m x : F := Num.min (q x) (p x / rho).
Implicit Types (f : T -> F) (K : nat).

Lemma betaE : beta = \sum_x m x.
Proof. exact: sumE. Qed.

Lemma missedS K : missed K.+1 = (1 - beta) * missed K.
Proof. by []. Qed.

Lemma accept_mass x : q x * accept x = m x.
Proof.
have r0 : rho != 0 by rewrite gt_eqF.
rewrite /kseq_accept /m /=; case: eqP => [->|/eqP q0].
  by rewrite mul0r min_l // divr_ge0 ?(ltW rho_gt0) ?p_row.1.
rewrite minr_pmulr ?q_row.1 // mulr1 minC; congr Num.min.
by field; rewrite r0 q0.
Qed.

Lemma loopS K n f : loop K n.+1 f = (\sum_x m x * f x) + (1 - beta) * loop K n f.
Proof.
rewrite -[LHS]/(draw q (fun x => accept x * f x + (1 - accept x) * loop K n f)) drawE.
have E x : q x * (accept x * f x + (1 - accept x) * loop K n f)
    = m x * f x + (q x - m x) * loop K n f.
  by rewrite -accept_mass; ring.
under eq_bigr do rewrite E.
by rewrite big_split /= -[X in _ + X]big_distrl /= sumrB q_row.2 -betaE.
Qed.

Lemma loopE K n f : beta * loop K n f =
  (1 - missed n) * (\sum_x m x * f x) + beta * (missed n * loop K 0 f).
Proof.
elim: n => [|n IH]; last first.
  rewrite loopS mulrDr mulrCA IH missedS; move: (\sum_x _) (loop K 0 f) (missed n) beta => a b d e.
  by ring.
rewrite (_ : missed 0 = 1) //; move: (\sum_x _) (loop K 0 f) beta => a b e.
by ring.
Qed.

Lemma residualE K x : missed K != 0 ->
  residual K x = (p x - m x * ((1 - missed K) / beta)) / missed K.
Proof. by rewrite /kseq_residual /= => /negbTE ->. Qed.

(* the mean of every f is that of the target *)
Theorem kseq_mean K f : beta != 0 -> missed K != 0 -> kseq K f = \sum_x p x * f x.
Proof.
move=> b0 k0; apply: (mulfI b0); rewrite loopE.
have -> : missed K * loop K 0 f =
    (\sum_x p x * f x) - (1 - missed K) / beta * (\sum_x m x * f x).
  rewrite -[loop K 0 f]/(draw (residual K) f) drawE !big_distrr /= -sumrB.
  by apply: eq_bigr => x _; rewrite residualE //; field; rewrite k0 b0.
rewrite mulrBr mulrA; move: (\sum_x _) (\sum_x _) => a c.
by field.
Qed.

(* and K-SEQ is a program, that is its residual is a row, if and only if      *)
(* p_acc min(q, p / rho) <= beta p at every token (Statement 3.5)             *)
Theorem kseq_residual_row K : 0 < beta -> 0 < missed K ->
  prob_row (residual K) <-> forall x, (1 - missed K) * m x <= beta * p x.
Proof.
move=> b_gt0 k_gt0; have b0 : beta != 0 by rewrite gt_eqF.
have k0 : missed K != 0 by rewrite gt_eqF.
have E x : beta * missed K * residual K x = beta * p x - (1 - missed K) * m x.
  by rewrite residualE //; field; rewrite b0 k0.
split=> [[r0 _] x|le].
  by rewrite -subr_ge0 -E mulr_ge0 // mulr_ge0 // ltW.
split=> [x|].
  by rewrite -(pmulr_rge0 _ (mulr_gt0 b_gt0 k_gt0)) E subr_ge0.
apply: (mulfI (mulf_neq0 b0 k0)); rewrite big_distrr /=.
under eq_bigr do rewrite E.
by rewrite sumrB -!big_distrr /= -betaE p_row.2; ring.
Qed.

(* Statement 3.5's inequality, p_acc min(q, p/rho) <= beta p at every token    *)
Definition kseq_valid K : Prop := forall x, (1 - missed K) * m x <= beta * p x.

Lemma m_ge0 x : 0 <= m x.
Proof. by rewrite le_minr q_row.1 divr_ge0 ?p_row.1 // ltW. Qed.

Lemma m_le_q x : m x <= q x.
Proof. by rewrite le_minl lexx. Qed.

Lemma beta_ge0 : 0 <= beta.
Proof. by rewrite betaE; apply: sumr_ge0 => x _; exact: m_ge0. Qed.

Lemma beta_le1 : beta <= 1.
Proof. by rewrite betaE -q_row.2; apply: ler_sum => x _; exact: m_le_q. Qed.

Lemma missed_ge0 K : 0 <= missed K.
Proof.
elim: K => [|K IH]; first exact: ler01.
by rewrite missedS mulr_ge0 // subr_ge0 beta_le1.
Qed.

Lemma missed0 K : missed K = 0 -> beta = 1.
Proof.
elim: K => [/eqP|K IH]; first by rewrite oner_eq0.
by rewrite missedS => /eqP; rewrite mulf_eq0 => /orP[|/eqP /IH //]; rewrite subr_eq0 => /eqP <-.
Qed.

(* no draft can be accepted *)
Lemma residual_disjoint K x : beta = 0 -> residual K x = p x.
Proof.
move=> b0; have m0 : m x = 0.
  have s0 : \sum_y m y = 0 by rewrite -betaE.
  exact: (psumr_eq0P (fun y _ => m_ge0 y) s0).
have k1 : missed K = 1 by elim: K => [//|K IH]; rewrite missedS b0 IH subr0 mulr1.
by rewrite residualE k1 ?oner_eq0 // m0 mul0r subr0 divr1.
Qed.

(* lossless for every rho that satisfies the inequality                       *)
Theorem kseq_lossless K f : kseq_valid K -> kseq K f = \sum_x p x * f x.
Proof.
move=> valid; have [b0|b0] := eqVneq beta 0.
  have -> : kseq K f = loop K 0 f.
    have m0 : \sum_x m x * f x = 0.
      have s0 : \sum_y m y = 0 by rewrite -betaE.
      by apply: big1 => x _; rewrite (psumr_eq0P (fun y _ => m_ge0 y) s0) ?mul0r.
    rewrite /kseq.kseq; elim: {2}K => [//|n IH].
    by rewrite loopS b0 m0 add0r subr0 mul1r IH.
  rewrite -[LHS]/(draw (residual K) f) drawE; apply: eq_bigr => x _.
  by rewrite residual_disjoint.
have [k0|k0] := eqVneq (missed K) 0; last exact: kseq_mean.
have b1 := missed0 k0; have := loopE K K f; rewrite -[loop K K f]/(kseq K f).
rewrite k0 b1 !mul1r mul0r addr0 subr0 mul1r => ->.
apply: eq_bigr => x _; congr (_ * _); apply/eqP; rewrite -subr_eq0 -oppr_eq0 opprB; apply/eqP.
have s0 : \sum_y (p y - m y) = 0 by rewrite sumrB -betaE p_row.2 b1 subrr.
apply: (psumr_eq0P _ s0) => // y _; rewrite subr_ge0.
by have := valid y; rewrite k0 b1 subr0 !mul1r.
Qed.

(* K-SEQ is a program, that is its residual is a row, if and only if it holds *)
Theorem kseq_program_iff K : 1 <= rho -> prob_row res0 ->
  prob_row (residual K) <-> kseq_valid K.
Proof.
move=> rho1 res0_row; have [b0|b0] := eqVneq beta 0.
  split=> _; last by split=> [x|]; [rewrite residual_disjoint // p_row.1
    | rewrite -p_row.2; apply: eq_bigr => x _; rewrite residual_disjoint].
  move=> x; rewrite b0 mul0r (_ : m x = 0) ?mulr0 //.
  have s0 : \sum_y m y = 0 by rewrite -betaE.
  exact: (psumr_eq0P (fun y _ => m_ge0 y) s0).
have [k0|k0] := eqVneq (missed K) 0; last first.
  by apply: kseq_residual_row; rewrite lt_def ?b0 ?beta_ge0 ?k0 ?missed_ge0.
split=> _; last first.
  by split=> [x|]; [|rewrite -res0_row.2; apply: eq_bigr => x _];
    rewrite /kseq_residual /= k0 eqxx ?res0_row.1.
move=> x; rewrite k0 subr0 mul1r (missed0 k0) mul1r /m le_minl; apply/orP; right.
by rewrite ler_pdivr_mulr // ler_pemulr // p_row.1.
Qed.
End KSeq.
