(* Random programs that are probability distributions.                        *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Distributions.
Variables (F : realFieldType) (T : finType).

Section Dist.
Variables (A B : Type).
Implicit Types (P : A -> Prop) (Q : B -> Prop).

Lemma dist_weaken P P' (m : M F A) :
  (forall z, P z -> P' z) -> dist P m -> dist P' m.
Proof.
move=> PP' [m1 m2 m3 m4 m5]; split=> // f g fg.
by apply: m1 => z /PP'; exact: fg.
Qed.

Lemma dist_ret P z : P z -> dist P (ret z : M F A).
Proof. by move=> Pa; split=> // [f g fg|f f0]; [exact: fg | exact: f0]. Qed.

Lemma dist_pos' P (m : M F A) (f : A -> F) :
  dist P m -> (forall z, P z -> 0 <= f z) -> 0 <= m f.
Proof.
move=> dm f0; rewrite (dist_supp dm (g := fun z => `|f z|)).
  by apply: (dist_pos dm) => z; exact: normr_ge0.
by move=> z /f0 fa; rewrite ger0_norm.
Qed.

Lemma dist_bind P Q (m : M F A) (k : A -> M F B) :
  dist P m -> (forall z, P z -> dist Q (k z)) -> dist Q (bind m k).
Proof.
move=> dm dk; split.
- by move=> f g fg; apply: (dist_supp dm) => z Pa; exact: (dist_supp (dk z Pa)).
- move=> f g; rewrite -(dist_add dm); apply: (dist_supp dm) => z Pa.
  exact: (dist_add (dk z Pa)).
- move=> c f; rewrite -(dist_scale dm); apply: (dist_supp dm) => z Pa.
  exact: (dist_scale (dk z Pa)).
- by move=> f f0; apply: (dist_pos' dm) => z Pa; exact: (dist_pos (dk z Pa)).
- rewrite -[RHS](dist_one dm); apply: (dist_supp dm) => z Pa.
  exact: (dist_one (dk z Pa)).
Qed.
End Dist.

Lemma dist_draw (r : T -> F) : (forall t, 0 <= r t) -> \sum_t r t = 1 ->
  dist (fun=> True) (draw r).
Proof.
move=> r0 r1; split=> [f g fg|f g|k f|f f0|]; rewrite !drawE.
- by apply: eq_bigr => t _; rewrite fg.
- by rewrite -big_split; apply: eq_bigr => t _; rewrite mulrDr.
- by rewrite big_distrr; apply: eq_bigr => t _; rewrite mulrCA.
- by apply: sumr_ge0 => t _; rewrite mulr_ge0.
- by under eq_bigr do rewrite mulr1.
Qed.

Lemma dist_coin (h : F) : 0 <= h <= 1 -> dist (fun=> True) (coin h).
Proof.
move=> /andP[h0 h1]; split=> [f g fg|f g|k f|f f0|]; rewrite !coinE.
- by rewrite !fg.
- by ring.
- by ring.
- by rewrite addr_ge0 ?mulr_ge0 ?subr_ge0.
- by ring.
Qed.

Lemma dist_sum (A : Type) (P : A -> Prop) (m : M F A) (I : Type) (r : seq I)
  (f : I -> A -> F) : dist P m ->
  m (fun z => \sum_(i <- r) f i z) = \sum_(i <- r) m (f i).
Proof.
move=> dm; elim: r => [|i r IH].
  rewrite big_nil -[RHS](mul0r (m (fun=> 0))) -(dist_scale dm).
  by apply: (dist_supp dm) => z _; rewrite big_nil mul0r.
rewrite big_cons -IH -(dist_add dm).
by apply: (dist_supp dm) => z _; rewrite big_cons.
Qed.

(* a distribution on sequences of n tokens is the sum over its law           *)
Lemma dist_tuple n (m : M F (seq T)) f : dist (fun b => size b = n) m ->
  m f = \sum_(b : n.-tuple T) Pr m b * f b.
Proof.
move=> dm; have E (b : n.-tuple T) :
    Pr m b * f b = m (fun x => f b * (x == b :> seq T)%:R).
  by rewrite (dist_scale dm) mulrC.
under eq_bigr do rewrite E.
rewrite -(dist_sum _ _ dm); apply: (dist_supp dm) => x /eqP xn.
rewrite (bigD1 (Tuple xn)) //= eqxx mulr1 big1 ?addr0 // => b bx.
case: eqP => [xb|_]; last by rewrite mulr0.
by case/eqP: bx; apply: val_inj; rewrite /= xb.
Qed.

Lemma dist_walk (r : model F T) n c : is_row r ->
  dist (fun x => size x = n) (walk r n c).
Proof.
move=> rr; elim: n c => [|n IH] c /=; first exact: dist_ret.
apply: (dist_bind (dist_draw (rr.1 c) (rr.2 c))) => t _.
by apply: (dist_bind (IH _)) => x xn; apply: dist_ret; rewrite /= xn.
Qed.

(* only tokens that have positive probability are drawn                       *)
Lemma dist_drafted (r : model F T) n c : is_row r ->
  dist (fun x => size x = n /\ path_prob r c x != 0) (walk r n c).
Proof.
move=> rr; have [_ add scale pos one] := dist_walk n c rr; split=> // f g fg.
rewrite !walk_sum; apply: eq_bigr => x _.
by have [->|x0] := eqVneq (path_prob r c x) 0; rewrite ?mul0r // fg // size_tuple.
Qed.

Lemma dist_bind2 (A B C : Type) (P : A * B -> Prop) (Q : C -> Prop)
  (m : M F (A * B)) (k : A -> B -> M F C) :
  dist P m -> (forall o, P o -> dist Q (k o.1 o.2)) -> dist Q (bind2 m k).
Proof. by move=> dm dk; exact: (dist_bind (k := fun o => k o.1 o.2) dm dk). Qed.
End Distributions.
