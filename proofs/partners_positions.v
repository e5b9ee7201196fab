(* Examples and partners of grids, cuts and node masses, on small pairs.      *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal recursive grid grammar masses distinct examples.
From Spectheory Require Import spec.without_replacement.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Positions.
Variable F : realFieldType.
Notation B := bool_finType.
Notation p := (@p F).
Notation q := (@q F).
Notation z := (@z F).

(* ---- a grid of three points is exact for the two-token pair, a grid of two  *)
(* is off by 1/6                                                              *)
Example grid_three f : grid_coin 3 (p [::] true) f = coin (p [::] true) f.
Proof. exact: (@grid_exact F 3 isT 1 f isT). Qed.

Example grid_two_wrong : grid_coin 2 (p [::] true) (fun b => b%:R) = 0.
Proof.
rewrite /grid_coin !big_ord_recl big_ord0 /= /below_threshold /p.
rewrite (_ : (1%:R / 2%:R <= 1 / 3%:R :> F) = false); last first.
  by apply/negbTE; rewrite -ltNge !mul1r ltf_pinv ?qualifE ?ltr0n // ltr_nat.
rewrite (_ : (2%:R / 2%:R <= 1 / 3%:R :> F) = false); last first.
  by apply/negbTE; rewrite -ltNge divff ?pnatr_eq0 // ltr_pdivr_mulr ?ltr0n // mul1r ltr1n.
by rewrite !add0r mul0r.
Qed.

(* ---- a grammar: p = (3/4, 1/4, 0), q uniform; C is forbidden                *)
Notation C := option_finType.
Definition masked (t : option bool) : F :=
  match t with Some true => 3%:R / 4%:R | Some false => 1 / 4%:R | None => 0 end.
Definition uniform (t : option bool) : F := 1 / 3%:R.

Lemma sum3 (g : option bool -> F) : \sum_t g t = g None + (g (Some true) + g (Some false)).
Proof.
rewrite (bigD1 None) //=; congr (_ + _).
rewrite (reindex_omap Some id) /=; last by case.
rewrite -(big_bool _ (fun t => g (Some t))); apply: eq_bigl => t; by rewrite eqxx.
Qed.

Lemma masked_row : prob_row masked.
Proof.
split=> [[[]|]|]; rewrite /masked ?lexx ?divr_ge0 ?ler0n ?ler01 //.
by rewrite sum3; field.
Qed.
Lemma uniform_row : prob_row uniform.
Proof.
split=> [t|]; first by rewrite divr_ge0 ?ler0n ?ler01.
by rewrite sum3 /uniform; field.
Qed.

Notation forbidden := (fun t : option bool => t == None).
Notation zero3 := (Convention (fun (_ : seq (option bool)) _ => 0) (fun=> 0) (fun _ => masked)).

(* the cut draft gives A the probability 2/3, not 3/4                          *)
Example cut_lossy : ~ (forall f, cut zero3 masked uniform forbidden f = draw masked f).
Proof.
have bad t : forbidden t -> masked t = 0 by case: t.
move=> /(cut_lossless zero3 masked_row uniform_row bad) [|same].
  rewrite /forbidden_mass (big_pred1 None) // /uniform => /eqP.
  by rewrite mul1r invr_eq0 pnatr_eq0.
have := same (Some false); rewrite residualE total_gainE sum3 !gainE /masked /uniform !mul1r.
have low : 1 / 4%:R - 1 / 3%:R <= 0 :> F.
  by rewrite (_ : _ - _ = - (1 / 12%:R)); [rewrite oppr_le0 divr_ge0 ?ler01 ?ler0n | field].
have high : 0 <= 3%:R / 4%:R - 1 / 3%:R :> F.
  by rewrite (_ : _ - _ = 5%:R / 12%:R); [rewrite divr_ge0 ?ler0n | field].
rewrite !mul1r in low high; rewrite !(max_r low) (max_l high).
rewrite max_r ?sub0r ?oppr_le0 ?invr_ge0 ?ler0n // mul0r.
rewrite (_ : _ == 0 = false); last first.
  rewrite add0r addr0 (_ : _ - _ = 5%:R / 12%:R); last by field.
  by apply/negbTE; rewrite mulf_neq0 ?invr_eq0 ?pnatr_eq0.
by move/esym/eqP; rewrite invr_eq0 pnatr_eq0.
Qed.

(* ---- node masses of one drafted token: 1/3 at A and at B is possible,       *)
(* 2/3 at A is not, although A is drafted with probability 2/3                *)
Definition thirds (a : seq B) : F := if a is [::] then 1 else 1 / 3%:R.
Example thirds_possible : exists verify, [/\ forall x, size x = 1%N -> sane verify x,
  lossless p q 1 verify & node_mass (iteration q 1 verify) [:: true] = 1 / 3%:R].
Proof.
have t0 : 0 <= 1 / 3%:R :> F by rewrite divr_ge0 ?ler01 ?ler0n.
have t12 : 1 / 3%:R <= 2%:R / 3%:R :> F by rewrite ler_pmul2r ?invr_gt0 ?ltr0n // ler1n.
have [] := (@one_path_masses F B p q 1 (@p_row F) (@q_row F) thirds).1.
  split=> // [[] // t _|[|t [|s a]] //=]; rewrite ?mulr1 ?ler01 // /thirds /= ?t0 /=.
    by rewrite /p; case: t.
  by rewrite /q; case: t.
move=> verify [vs good [_ xE]]; exists verify; split=> //; exact: (xE [:: true]).
Qed.

Example two_thirds_impossible verify : (forall x, size x = 1%N -> sane verify x) ->
  lossless p q 1 verify -> node_mass (iteration q 1 verify) [:: true] != 2%:R / 3%:R.
Proof.
move=> vs good; apply/eqP => mass.
have := node_mass_p (@p_row F) (@q_row F) vs good true (isT : size ([::] : seq B) < 1)%N.
rewrite [rcons _ _]/= mass (_ : node_mass _ [::] = 1); last first.
  rewrite -[RHS](EV1 (@q_row F) vs); apply: (EV_eq (@q_row F) vs) => s y _.
  by rewrite /= prefix0s.
by rewrite mulr1 /p ler_pmul2r ?invr_gt0 ?ltr0n // lern1.
Qed.

(* ---- two distinct drafts of the two-token pair: one is always accepted; if  *)
(* the second is tested against the target's row, A has 4/9 and not 1/3       *)
Notation without := (without (field_numbers F) (tokens B) z (q [::])).
Lemma without_A : without [:: true] true = 0 /\ without [:: true] false = 1.
Proof.
have t0 : 1 / 3%:R == 0 :> F = false by apply/negbTE; rewrite mul1r invr_eq0 pnatr_eq0.
by rewrite /without_replacement.without /= sumE big_bool /q /= add0r t0 mul0r divff ?t0.
Qed.

Definition second_row (m : M F B) : M F B :=
  x <- draw (q [::]);; ok <- coin (Num.min (ratio p q z [::] x) 1);; if ok then ret x else m.
Example distinct_same_row_lossy :
  second_row (y <- draw (without [:: true]);;
    ok <- coin (Num.min (p [::] y / without [:: true] y) 1);; if ok then ret y else ret true)
    (fun t => t%:R) = 4%:R / 9%:R.
Proof.
have [wA wB] := without_A.
rewrite /second_row /bind drawE big_bool /common.coin /= ratioA ratioB examples.minA minB.
rewrite /bind drawE big_bool /= wA wB mul0r add0r mul1r divr1 /ret /= min_l; last first.
  by rewrite /p ler_pdivr_mulr ?ltr0n // mul1r ler_nat.
by rewrite /p /q /=; field.
Qed.
End Positions.
