(* Numbers of the two-token pair for several paths and for greedy block       *)
(* verification, and the counterexamples to SpecTr-GBV's theorems.            *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal wrong_rows programs selected greedy.
From Spectheory Require Import selection recursive kseq_lossless prefix_tests greedy_block_lossless examples partners.
From Spectheory Require Import spec.greedy_multipath spec.spectr_gbv spec.kseq spec.greedy_block.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Several.
Variable F : realFieldType.
Notation B := bool_finType.
Notation p := (@p F).
Notation q := (@q F).
Notation z := (@z F).
Let p_row := @p_row F.
Let q_row := @q_row F.
Let z_proper := @z_proper F.
Notation numbers := (field_numbers F).
Notation first_A := (fun s : seq B => (head false s)%:R : F).

Lemma target_A : walk p 2 [::] first_A = 1 / 3%:R.
Proof. by rewrite !walkE /= /ret /p /=; field. Qed.

(* numbers that the lemmas of the two-token pair decide *)
Lemma le_num (a b : nat) (c : nat) : (a <= b)%N -> a%:R / c.+1%:R <= b%:R / c.+1%:R :> F.
Proof. by move=> ab; rewrite ler_pmul2r ?invr_gt0 ?ltr0n // ler_nat. Qed.

(* ---- SpecTr-GBV, L = 1, K = 2                                               *)
Notation left_over := (left_over numbers p q 2).
Notation gbv := (spectr_gbv numbers (tokens B) p q z 1 2).

Lemma left_A : left_over [:: true] = 0.
Proof.
rewrite /spectr_gbv.left_over /= !mulr1 /p /q.
rewrite (_ : (1 / 3%:R == 0 :> F) = false); last by apply/negbTE; rewrite mul1r invr_eq0 pnatr_eq0.
rewrite (_ : 2%:R / 3%:R / (1 / 3%:R) = 2%:R); last by field.
by rewrite min_r ?ler1n // subrr !mul0r mulr0.
Qed.

Lemma left_B : left_over [:: false] = 1 / 6%:R.
Proof.
rewrite /spectr_gbv.left_over /= !mulr1 /p /q.
rewrite (_ : (2%:R / 3%:R == 0 :> F) = false); last by apply/negbTE; rewrite mulf_neq0 ?invr_eq0 ?pnatr_eq0.
rewrite (_ : 1 / 3%:R / (2%:R / 3%:R) = 1 / 2%:R); last by field.
by rewrite min_l ?half_le1 //; field.
Qed.

Lemma accept_A : gbv_accept numbers (tokens B) p q z 1 2 [:: true] = 3%:R / 8%:R.
Proof.
rewrite /gbv_accept /= left_A /any_draft /= !mulr1 /p /q ifF; first by field.
by apply/negbTE; rewrite (_ : _ - _ = 8%:R / 9%:R); [rewrite mulf_neq0 ?invr_eq0 ?pnatr_eq0 | field].
Qed.

Lemma accept_B : gbv_accept numbers (tokens B) p q z 1 2 [:: false] = 9%:R / 10%:R.
Proof.
rewrite /gbv_accept /= left_B /any_draft /= !mulr1 /p /q ifF; first by field.
by apply/negbTE; rewrite (_ : _ - _ = 5%:R / 9%:R); [rewrite mulf_neq0 ?invr_eq0 ?pnatr_eq0 | field].
Qed.

Lemma sum_left_root : sum_left numbers (tokens B) p q 2 [::] = 1 / 6%:R.
Proof. by rewrite /sum_left sumE big_bool /= left_A left_B add0r. Qed.

Let sixth_neq0 : (1 / 6%:R == 0 :> F) = false.
Proof. by apply/negbTE; rewrite mul1r invr_eq0 pnatr_eq0. Qed.

Lemma gbv_residual_A : gbv_residual numbers (tokens B) p q z 2 [::] true = 0.
Proof. by rewrite /gbv_residual /= sum_left_root sixth_neq0 left_A mul0r. Qed.
Lemma gbv_residual_B : gbv_residual numbers (tokens B) p q z 2 [::] false = 1.
Proof. by rewrite /gbv_residual /= sum_left_root sixth_neq0 left_B divff // sixth_neq0. Qed.

(* the mean of every function of the accepted tokens and the next one         *)
Lemma gbv_mean f : gbv f =
  31%:R / 120%:R * draw (p [:: true]) (fun y => f ([:: true], y))
  + 51%:R / 120%:R * draw (p [:: false]) (fun y => f ([:: false], y))
  + 38%:R / 120%:R * f ([::], false).
Proof.
rewrite /spectr_gbv.spectr_gbv /bind !severalS walkE !walk0E /=.
rewrite /bind /ret /= /bind2 /bind /common.coin /=.
rewrite !drawE !big_bool /= !accept_A !accept_B /ret /= !drawE !big_bool /=.
by rewrite gbv_residual_A gbv_residual_B /p /q /=; field.
Qed.

(* Theorem 4.2 is false: the first token is A with probability 31/120, not 1/3 *)
Example gbv_lossy : ~ lossless_call p 1 gbv.
Proof.
have lhs : continued p 1 gbv first_A = 31%:R / 120%:R.
  rewrite /continued /bind2 gbv_mean /bind /ret /= !drawE !big_bool /= /bind /ret /=.
  by rewrite ?drawE ?big_bool /p /=; field.
move=> /(_ first_A); rewrite lhs target_A => /eqP; rewrite -subr_eq0.
rewrite (_ : _ - _ = - (9%:R / 120%:R)); last by field.
by rewrite oppr_eq0 mulf_eq0 invr_eq0 !pnatr_eq0.
Qed.

(* Theorem 5.3 is false: the mean accepted length is 41/60, Bound(2) is 5/6    *)
Definition bound : F := \sum_t (path_prob p [::] [:: t] - left_over [:: t]).
Example gbv_below_bound : mean_tau gbv = 41%:R / 60%:R /\ bound = 5%:R / 6%:R.
Proof.
split; last by rewrite /bound big_bool left_A left_B /= !mulr1 /p; field.
by rewrite /mean_tau gbv_mean /= !drawE !big_bool /p /=; field.
Qed.

(* ---- greedy multi-path block verification, L = 1, K = 2: A is ranked below B *)
Definition A_below (c : seq B) (t t' : B) : bool := t && ~~ t'.
Lemma A_below_ranking : ranking A_below.
Proof. by split=> [c [] //|c [] [] []//|c [] []]. Qed.
Notation r := (rows_of numbers q (skewed numbers (tokens B) q A_below 2)).

Lemma skewed_root : skewed numbers (tokens B) q A_below 2 [::] = 1.
Proof. by rewrite /skewed /= addr0 !mulr1 mul0r subr0. Qed.
Lemma skewed_A : skewed numbers (tokens B) q A_below 2 [:: true] = 4%:R / 9%:R.
Proof. by rewrite /skewed /= sumE big_bool /A_below /q /=; field. Qed.
Lemma skewed_B : skewed numbers (tokens B) q A_below 2 [:: false] = 5%:R / 9%:R.
Proof. by rewrite /skewed /= sumE big_bool /A_below /q /=; field. Qed.

Lemma r_row : is_row r.
Proof.
have rk := A_below_ranking; apply: rows_of_row => //.
  exact: skewed_ge0.
exact: skewed_split.
Qed.
Lemma r_A : r [::] true = 4%:R / 9%:R.
Proof. by rewrite rows_ofE skewed_root oner_eq0 skewed_A divr1. Qed.
Lemma r_B : r [::] false = 5%:R / 9%:R.
Proof. by rewrite rows_ofE skewed_root oner_eq0 skewed_B divr1. Qed.

Notation greedy := (greedy_multipath numbers (tokens B) p q z A_below 1 1).

(* 8/9 is more than Bound(2) = 5/6, which is no bound of lossless verifiers    *)
Example greedy_value : mean_tau greedy = 8%:R / 9%:R.
Proof.
rewrite (greedy_multipath_mean_tau q_row A_below_ranking 1 1 p_row z_proper) big_ord1.
rewrite (reindex (fun t : B => [tuple t])) /=; last first.
  exists (fun a : 1.-tuple B => thead a) => [t _ //|a _].
  by rewrite [RHS]tuple_eta; apply: val_inj => /=; case: a => [[|t []]].
rewrite big_bool /weight /= !mulr1 ![next_weight _ _ _ _ _ _ * _]mulrC.
rewrite !(accepted _ p_row r_row) ?ler01 // !gainE !mul1r r_A r_B /p.
rewrite max_r; last by rewrite subr_le0 (_ : 1 / 3%:R = 3%:R / 9%:R); [exact: le_num | field].
rewrite max_l; last by rewrite subr_ge0 (_ : 2%:R / 3%:R = 6%:R / 9%:R); [exact: le_num | field].
by field.
Qed.

(* its partner: the highest of two paths, block-verified with the draft's rows *)
Definition highest_with_draft_rows : M F (seq B * B) :=
  x <- highest numbers (tokens B) A_below q 1 1;; block p q z 1 x.
Example highest_with_draft_rows_lossy : ~ lossless_call p 1 highest_with_draft_rows.
Proof.
have lhs : continued p 1 highest_with_draft_rows first_A = 2%:R / 9%:R.
  rewrite /continued /highest_with_draft_rows /bind2 /bind /= /bind /ret /=.
  rewrite !drawE !big_bool /= /bind /ret !drawE !big_bool /= /block.block /bind2 /bind /ret /=.
  rewrite /bind /common.coin /= !nA !nB.
  rewrite /ret /= !correctionE /= !drawE !big_bool /= resA resB /p /q /=.
  by rewrite /bind /ret /= ?drawE ?big_bool /= /bind /ret ?drawE ?big_bool /=; field.
move=> /(_ first_A); rewrite lhs target_A => /eqP; rewrite -subr_eq0.
rewrite (_ : _ - _ = - (1 / 9%:R)); last by field.
by rewrite oppr_eq0 mul1r invr_eq0 pnatr_eq0.
Qed.

(* ---- greedy block verification, L = 2                                       *)
Notation alone := (greedy_block.greedy_block numbers (tokens B) p q z 2).

(* AA is accepted with probability min(1/9, 4/9) q(AA)^-1, in all min(p, q)     *)
Example greedy_block_value :
  node_mass (iteration q 2 alone) [:: true; true] = 1 / 9%:R.
Proof.
rewrite (greedy_block_node_mass p_row q_row z_proper) //= !mulr1 /p /q.
rewrite (_ : 1 / 3%:R * (1 / 3%:R) = 1 / 9%:R); last by field.
rewrite (_ : 2%:R / 3%:R * (2%:R / 3%:R) = 4%:R / 9%:R); last by field.
by rewrite min_l //; exact: (@le_num 1 4 8).
Qed.

Lemma g_values : [/\ g p q z [:: true] = 1 / 2%:R, g p q z [:: false] = 2%:R,
    g p q z [:: true; true] = 1 / 4%:R, g p q z [:: true; false] = 1
  & g p q z [:: false; true] = 1 /\ g p q z [:: false; false] = 4%:R].
Proof.
have E c w t : greedy_block.greedy_weight numbers p q z c w t = w * ratio p q z c t by [].
by split; [| | | |split]; rewrite /g /= !E ?ratioA ?ratioB; field.
Qed.

(* without the modification it is lossy: BA has the probability 1/3, not 2/9   *)
Example greedy_block_alone_lossy : ~ lossless p q 2 alone.
Proof.
pose f s : F := (take 2 s == [:: false; true])%:R.
have [gA gB gAA gAB [gBA gBB]] := g_values.
have lhs : continued p 2 (iteration q 2 alone) f = 1 / 3%:R.
  pose k o := walk p (2 - size o.1) (rcons o.1 o.2) (fun x => f (rcons o.1 o.2 ++ x)).
  rewrite -[LHS]/(iteration q 2 alone k) (@greedy_stops F B p q z 2 p_row q_row) /= /longer !big_bool /=.
  rewrite [g p q z [::]]/= gA gB gAA gAB gBA gBB minxx !examples.minA.
  rewrite (_ : Num.min (1 / 4%:R) 1 = 1 / 4%:R); last by rewrite min_l // ler_pdivr_mulr ?ltr0n // mul1r ler1n.
  rewrite (_ : Num.min 2%:R 1 = 1); last by rewrite min_r // ler1n.
  rewrite (_ : Num.min 4%:R 1 = 1); last by rewrite min_r // ler1n.
  rewrite !correctionE /= !drawE !big_bool /= resA resB.
  have g0 : g p q z [::] = 1 by [].
  rewrite /k /= /bind !drawE !big_bool /= /bind !drawE !big_bool /= /ret /f /= g0 /p /=.
  by field.
move=> /(_ f); rewrite lhs (_ : walk p 3 [::] f = 2%:R / 9%:R); last first.
  by rewrite !walkE /= /ret /f /= /p /=; field.
move=> /eqP; rewrite -subr_eq0 (_ : _ - _ = 1%:R / 9%:R); last by field.
by rewrite (negbTE (ninth_neq0 F 0)).
Qed.

(* ---- K-SEQ with two drafts                                                  *)
Notation row r := (r [::]).
(* rho = 3/2 satisfies the inequality: a draft is accepted with 65/81          *)
Example kseq_value : beta numbers (tokens B) (row p) (row q) (3%:R / 2%:R) = 5%:R / 9%:R.
Proof.
rewrite /beta sumE big_bool /p /q /=.
rewrite (_ : 1 / 3%:R / (3%:R / 2%:R) = 2%:R / 9%:R); last by field.
rewrite (_ : 2%:R / 3%:R / (3%:R / 2%:R) = 4%:R / 9%:R); last by field.
rewrite (_ : 2%:R / 3%:R = 6%:R / 9%:R); last by field.
rewrite (_ : 1 / 3%:R = 3%:R / 9%:R); last by field.
by rewrite min_r ?le_num // min_l ?le_num //; field.
Qed.

(* rho = 1 does not: A would need a negative residual                          *)
Example kseq_one_fails res0 : prob_row res0 ->
  ~ prob_row (kseq_residual numbers (tokens B) (row p) (row q) 1 res0 2).
Proof.
move=> r0; have pr : prob_row (row p) by split; [exact: p_row.1 | exact: p_row.2].
have qr : prob_row (row q) by split; [exact: q_row.1 | exact: q_row.2].
move=> /(kseq_program_iff pr qr ltr01 2 (lexx 1) r0) /(_ true).
rewrite /= /beta sumE big_bool /p /q /= !divr1.
have t12 : 1 / 3%:R <= 2%:R / 3%:R :> F by exact: (@le_num 1 2 2).
rewrite (min_r t12) (min_l t12).
rewrite [X in X <= _](_ : _ = 8%:R / 27%:R); last by field.
rewrite [X in _ <= X](_ : _ = 6%:R / 27%:R); last by field.
by rewrite ler_pmul2r ?invr_gt0 ?ltr0n // ler_nat.
Qed.

End Several.
