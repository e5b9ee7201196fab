(* Examples and partners of length rules, of the converse of the kept-draft    *)
(* criterion and of wrong target rows.                                        *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal calls adaptive wrong_rows.
From Spectheory Require Import kept length_rules kept_converse examples partners partners_positions.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lengths.
Variable F : realFieldType.
Notation B := bool_finType.
Notation p := (@p F).
Notation q := (@q F).
Notation z := (@z F).
Let p_row := @p_row F.
Let q_row := @q_row F.

(* ---- the rule that drops B, as a length rule: its defect is 2/9             *)
Definition drops_B (n : nat) (x : seq B) : F := (n == (x == [:: true]))%:R.
Lemma drops_B_ge0 n x : 0 <= drops_B n x. Proof. exact: ler0n. Qed.
Lemma drops_B_one x : size x = 1%N -> \sum_(n < 2) drops_B n x = 1.
Proof.
by case: x => [|[] [|s x]] //= _; rewrite !big_ord_recl big_ord0 /drops_B /= !addr0 ?add0r.
Qed.

Example drops_B_defect :
  total_variation 1 (completed_draft q 1 (kept_by 1 drops_B q)) (walk q 1 [::]) = 2%:R / 9%:R.
Proof.
have kA : keep drops_B true = 1 by [].
have kB : keep drops_B false = 0 by [].
have m : mean_keep q drops_B = 2%:R / 3%:R by rewrite /mean_keep big_bool kA kB /q /=; field.
rewrite (one_token_defect q_row drops_B_one) big_bool kA kB m /q /=.
rewrite (_ : 1 - 2%:R / 3%:R = 1 / 3%:R); last by field.
by rewrite sub0r normrN !ger0_norm ?divr_ge0 ?ler0n ?ler01 //; field.
Qed.

(* so block verification is lossy at the target of the two-token pair         *)
Example drops_B_lossy : ~ (forall f,
  (x <- kept_by 1 drops_B q;; handed p (block p q z) 1 x) f = walk p 2 [::] f).
Proof.
have positive c t : q c t != 0 -> 0 < p c t.
  by move=> _; rewrite /p; case: t; rewrite divr_gt0 ?ltr0n ?ltr01.
move=> /(length_rule_block_positive p_row q_row (z_proper F) positive drops_B_ge0 drops_B_one).
move=> stopping; have right : draft_law_right q 1 (kept_by 1 drops_B q) by apply/pseudo_stopping_right.
have := drops_B_defect; rewrite /total_variation big1 ?mul0r => [/esym/eqP|b _].
  by rewrite (negbTE (ninth_neq0 F 1)).
by rewrite /Pr right subrr normr0.
Qed.

(* ---- a rule that looks ahead: the first token is kept if the second is A.   *)
(* It is pseudo-stopping for the fair draft, but not predictable.             *)
Definition looks_ahead (n : nat) (x : seq B) : F := (n == nth false x 1)%:R.

Example looks_ahead_pseudo_stopping : pseudo_stopping 2 looks_ahead (@fair F).
Proof.
case=> [|a [|b [|s x]]] // _ _.
have -> : density 2 looks_ahead (@fair F) [:: a; b] = walk (@fair F) 2 [::] (looks_ahead 0)
    + walk (@fair F) 1 [:: a] (fun y => looks_ahead 1 (a :: y)) + looks_ahead 2 [:: a; b].
  by rewrite /density !big_ord_recl big_ord0 addr0 addrA.
by rewrite !walkE !walk0E /looks_ahead /fair; case: b => /=; field.
Qed.

Example looks_ahead_not_predictable : ~ predictable 2 looks_ahead.
Proof.
move=> /(_ 0%N [:: true; true] [:: true; false] erefl erefl erefl).
rewrite !big_ord_recl !big_ord0 /looks_ahead /= !addr0 => /eqP.
by rewrite eq_sym oner_eq0.
Qed.

(* ---- token verification with the rows 1/2, 1/2: off by at least 1/6         *)
Notation fair := (@fair F).
Example fair_rows_defect L :
  1 / 6%:R <= defect L (iteration q L (token fair q z L)) p.
Proof.
have d : dist (fun o : seq B * B => size o.1 <= L)%N (iteration q L (token fair q z L)).
  apply: (dist_iteration q_row) => x _.
  by apply: token_sane; [exact: fair_row | exact: q_row | exact: z_proper].
have good : lossless_call fair L (iteration q L (token fair q z L)).
  exact: token_lossless (fair_row F) q_row L.
have l0 : loss (iteration q L (token fair q z L)) fair p [::] = 1 / 6%:R.
  rewrite /loss (_ : node_mass _ _ = 1); last first.
    rewrite -[RHS](dist_one d); apply: (dist_supp d) => o _ /=.
    by rewrite prefix0s.
  rewrite big_bool /fair /p /= (_ : 1 / 2%:R - 1 / 3%:R = 1 / 6%:R); last by field.
  rewrite (_ : 1 / 2%:R - 2%:R / 3%:R = - (1 / 6%:R)); last by field.
  by rewrite normrN ger0_norm ?divr_ge0 ?ler0n ?ler01 //; field.
apply: le_trans (wrong_rows_defect_ge d (fair_row F) p_row good).
rewrite big_ord_recl -[X in X <= _]addr0 ler_add //; last first.
  by apply: sumr_ge0 => n _; apply: sumr_ge0 => a _; exact: loss_ge0 d fair p a.
by rewrite (big_pred1 [tuple]) ?l0 // => a; rewrite (tuple0 a) /= eqxx.
Qed.

(* ---- positivity in 8.1 (iii): at the target (1/2, 1/2, 0) drafts that are    *)
(* drawn from the target and handed over with uniform rows are lossless,      *)
(* although the rows are wrong                                                *)
Definition halves (t : option bool) : F := if t is Some _ then 1 / 2%:R else 0.
Definition half_rows (c : seq (option bool)) : option bool -> F := halves.
Definition third_rows (c : seq (option bool)) : option bool -> F := @uniform F.
Definition from_target : M F (seq (option bool)) := t <- draw halves;; ret [:: t].
Notation zero3 := (Convention (fun (_ : seq (option bool)) _ => 0) (fun=> 0) (fun _ => halves)).

Example zeros_not_right : ~ draft_law_right third_rows 1 from_target.
Proof.
move=> /(_ (fun x => (x == [:: None])%:R)).
have -> : completed_draft third_rows 1 from_target (fun x => (x == [:: None])%:R) = 0.
  by rewrite /completed_draft /from_target /bind /ret drawE sum3 /= mul0r !mulr0 !addr0.
have -> : walk third_rows 1 [::] (fun x => (x == [:: None])%:R) = 1 / 3%:R.
  by rewrite walkS sum3 !walk0E /= /third_rows /uniform mulr1 !mulr0 !addr0.
by move=> /esym/eqP; rewrite mul1r invr_eq0 pnatr_eq0.
Qed.

Example zeros_hide f :
  (x <- from_target;; handed half_rows (token half_rows third_rows zero3) 1 x) f
  = walk half_rows 2 [::] f.
Proof.
rewrite -[LHS]/(draw halves (fun t => handed half_rows (token half_rows third_rows zero3) 1 [:: t] f)).
rewrite drawE walkS; apply: eq_bigr => t _; rewrite /half_rows.
case: t => [b|]; last by rewrite !mul0r.
congr (_ * _); rewrite walkS /handed /bind2 /token.token /bind token_loopE.
rewrite (_ : Num.min _ 1 = 1); first by rewrite subrr mul0r addr0 mul1r /= /ret correctionE /= drawE.
rewrite ratioE /third_rows /uniform /half_rows /halves ifF; last first.
  by apply/negbTE; rewrite mul1r invr_eq0 pnatr_eq0.
rewrite (_ : 1 / 2%:R / (1 / 3%:R) = 3%:R / 2%:R); last by field.
by rewrite min_r // ler_pdivl_mulr ?ltr0n // mul1r ler_nat.
Qed.
End Lengths.
