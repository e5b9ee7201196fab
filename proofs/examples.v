(* The printed numbers of the two-token pair, and a wrong verifier refuted.   *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section TwoToken.
Variable F : realFieldType.
Notation B := bool_finType.
(* A = true, B = false *)
Definition p (c : seq B) (t : B) : F := if t then 1 / 3%:R else 2%:R / 3%:R.
Definition q (c : seq B) (t : B) : F := if t then 2%:R / 3%:R else 1 / 3%:R.
(* x/0 = 0, and p as residual where the sum is 0 *)
Definition z : convention F B := Convention (fun _ _ => 0) (fun=> 0) p.

Lemma p_row : is_row p.
Proof.
split=> [c t|c]; first by rewrite /p; case: t; rewrite divr_ge0 ?ler0n ?ler01.
by rewrite big_bool /=; field.
Qed.
Lemma q_row : is_row q.
Proof.
split=> [c t|c]; first by rewrite /q; case: t; rewrite divr_ge0 ?ler0n ?ler01.
by rewrite big_bool /=; field.
Qed.

Lemma walkE (r : seq B -> B -> F) n c (f : seq B -> F) : walk r n.+1 c f =
  r c true * walk r n (rcons c true) (fun x => f (true :: x))
  + r c false * walk r n (rcons c false) (fun x => f (false :: x)).
Proof. by rewrite walkS big_bool. Qed.

Lemma ratioA c : ratio p q z c true = 1 / 2%:R.
Proof. by rewrite ratioE /p /q ifF; [field | apply/negbTE; rewrite mulf_neq0 ?invr_neq0 ?pnatr_eq0]. Qed.
Lemma ratioB c : ratio p q z c false = 2%:R.
Proof. by rewrite ratioE /p /q ifF; [field | apply/negbTE; rewrite mulf_neq0 ?invr_neq0 ?pnatr_eq0 ?oner_neq0]. Qed.

Lemma half_le1 : 1 / 2%:R <= 1 :> F.
Proof. by rewrite ler_pdivr_mulr ?ltr0n // mul1r ler1n. Qed.

Lemma z_proper : proper z.
Proof. by split=> [c t|c|]; rewrite ?lexx ?ler01 //; exact: p_row. Qed.

Lemma correction_const L s w (x : F) : correction p q z L s w (fun=> x) = x.
Proof.
have d : dist (fun=> True) (correction p q z L s w).
  by apply: dist_correction; [exact: p_row | exact: z_proper].
by rewrite -[x]mulr1 (dist_scale d) (dist_one d).
Qed.

Lemma minA : Num.min (1 / 2%:R) 1 = 1 / 2%:R :> F.
Proof. by rewrite min_l // half_le1. Qed.
Lemma minB : Num.min 2%:R 1 = 1 :> F.
Proof. by rewrite min_r // ler1n. Qed.

Example token_value : mean_tau (iteration q 2 (token p q z 2)) = 10%:R / 9%:R.
Proof.
rewrite /mean_tau /iteration [LHS]walkE !walkE /= /token /bind /ret /=.
rewrite /bind /coin /ret /= !ratioA !ratioB minA minB.
rewrite !correction_const /= /q /=.
by field.
Qed.

Lemma S_half c : total_gain p q c (1 / 2%:R) = 0.
Proof.
rewrite total_gainE big_bool !gainE /p /q /= !max_r ?addr0 //.
  by rewrite subr_le0 le_eqVlt; apply/orP; left; apply/eqP; field.
rewrite subr_le0; apply: (@le_trans _ _ (1 * (1 / 3%:R))).
  by rewrite ler_wpmul2r ?half_le1 // divr_ge0 ?ler0n ?ler01.
by rewrite mul1r ler_wpmul2r ?invr_ge0 ?ler0n // ler1n.
Qed.

Lemma S_one c : total_gain p q c 1 = 1 / 3%:R.
Proof.
rewrite total_gainE big_bool !gainE /p /q /= !mul1r max_r; last first.
  by rewrite subr_le0 ler_pmull ?invr_gt0 ?ltr0n // ler1n.
rewrite max_l; first by field.
by rewrite subr_ge0 ler_pmull ?invr_gt0 ?ltr0n // ler1n.
Qed.

Lemma h_half c : accept_prob p q z c (1 / 2%:R) = 0.
Proof. by rewrite accept_probE S_half mul0r; case: ifP. Qed.
Lemma h_one c : accept_prob p q z c 1 = 1.
Proof.
by rewrite accept_probE S_one addrK ifF ?divff // ?mul1r ?invr_eq0 ?pnatr_eq0.
Qed.

Lemma nA c : next_weight p q z c 1 true = 1 / 2%:R.
Proof. by rewrite next_weightE mul1r ratioA minA. Qed.
Lemma nB c : next_weight p q z c 1 false = 1.
Proof. by rewrite next_weightE mul1r ratioB minB. Qed.
Lemma nAA c : next_weight p q z c (1 / 2%:R) true = 1 / 4%:R.
Proof.
rewrite next_weightE ratioA (_ : 1 / 2%:R * (1 / 2%:R) = 1 / 4%:R); last by field.
by rewrite min_l // ler_pdivr_mulr ?ltr0n // mul1r ler1n.
Qed.
Lemma nAB c : next_weight p q z c (1 / 2%:R) false = 1.
Proof. by rewrite next_weightE ratioB (_ : 1 / 2%:R * 2%:R = 1) ?minxx //; field. Qed.

Example block_value : mean_tau (iteration q 2 (block p q z 2)) = 11%:R / 9%:R.
Proof.
rewrite /mean_tau /iteration [LHS]walkE !walkE /= /block /bind /bind2 /ret /=.
rewrite /bind /coin /ret /= !(nA, nB, nAA, nAB).
rewrite !h_half !h_one !correction_const /= /q /=.
by field.
Qed.

(* A wrong verifier, refuted: the correction is drawn from p instead of the  *)
(* residual.                                                                 *)
Definition wrong (x : seq B) : M F (seq B * B) :=
  s <- token_loop p q z [::] x;; y <- draw (p s);; ret (s, y).

Example wrong_not_lossless : ~ lossless p q 1 wrong.
Proof.
pose f s : F := (head false s)%:R.
have lhs : continued p 1 (iteration q 1 wrong) f = 4%:R / 9%:R.
  rewrite /continued /iteration /bind2 /bind walkE /= /wrong /bind /ret /=.
  rewrite /bind /coin /ret /= !ratioA !ratioB minA minB /= !drawE !big_bool /=.
  by rewrite /f /p /q /= /bind /ret ?drawE ?big_bool /=; field.
have rhs : walk p 2 [::] f = 1 / 3%:R.
  by rewrite !walkE /= /ret /p /f /=; field.
move=> /(_ f); rewrite lhs rhs => /eqP; rewrite -subr_eq0.
have -> : 4%:R / 9%:R - 1 / 3%:R = 1 / 9%:R :> F by field.
by rewrite mul1r invr_eq0 pnatr_eq0.
Qed.
End TwoToken.
