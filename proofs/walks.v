(* Tokens drawn one after the other from a model.                             *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Walk.
Variables (F : realFieldType) (T : finType) (r : model F T).
Implicit Types (c : seq T) (f g : seq T -> F).

(* walk r n c only sees sequences of length n *)
Lemma walk_ext n c f g :
  (forall x, size x = n -> f x = g x) -> walk r n c f = walk r n c g.
Proof.
elim: n c f g => [|n IH] c f g fg; first exact: fg.
rewrite !walkS; apply: eq_bigr => t _; congr (_ * _).
by apply: IH => x sx; apply: fg; rewrite /= sx.
Qed.

Lemma walkD n c f g :
  walk r n c (fun x => f x + g x) = walk r n c f + walk r n c g.
Proof.
elim: n c f g => [|n IH] c f g //; rewrite !walkS -big_split /=.
by apply: eq_bigr => t _; rewrite IH mulrDr.
Qed.

Lemma walkZ n c a f : walk r n c (fun x => a * f x) = a * walk r n c f.
Proof.
elim: n c f => [|n IH] c f //; rewrite !walkS big_distrr /=.
by apply: eq_bigr => t _; rewrite IH mulrCA.
Qed.

Hypothesis r1 : forall c, \sum_t r c t = 1.

Lemma walk1 n c a : walk r n c (fun=> a) = a.
Proof.
elim: n c => [|n IH] c //; rewrite walkS.
by under eq_bigr do rewrite IH; rewrite -big_distrl /= r1 mul1r.
Qed.

End Walk.

Section Walk2.
Variables (F : realFieldType) (T : finType) (r : model F T).
Implicit Types (a c x : seq T) (f g : seq T -> F).

Lemma walk_sum n c f :
  walk r n c f = \sum_(x : n.-tuple T) path_prob r c x * f x.
Proof.
elim: n c f => [|n IH] c f.
  by rewrite (big_pred1 [tuple]) /= ?mul1r // => x; apply/esym/eqP; exact: tuple0.
rewrite walkS (reindex (fun z : T * n.-tuple T => cons_tuple z.1 z.2)) /=; last first.
  exists (fun x : n.+1.-tuple T => (thead x, behead_tuple x)) => [[t x] _|x _].
    by congr (_, _); apply: val_inj.
  by rewrite /= [RHS]tuple_eta; apply: val_inj.
rewrite -(pair_bigA _ (fun t (x : n.-tuple T) =>
  path_prob r c (cons_tuple t x) * f (cons_tuple t x))) /=.
apply: eq_bigr => t _; rewrite IH big_distrr; apply: eq_bigr => x _ /=.
by rewrite mulrA.
Qed.

Lemma path_prob_rcons c a t : path_prob r c (rcons a t) = path_prob r c a * r (c ++ a) t.
Proof.
elim: a c => [|u a IH] c /=; first by rewrite cats0 mul1r mulr1.
by rewrite IH -mulrA cat_rcons.
Qed.

Lemma walk0 n c : walk r n c (fun=> 0) = 0.
Proof. by rewrite walk_sum big1 // => x _; rewrite mulr0. Qed.

Hypothesis r_row : is_row r.
Let r_ge0 c t : 0 <= r c t := r_row.1 c t.

Lemma path_prob_ge0 c a : 0 <= path_prob r c a.
Proof. by elim: a c => [|t a IH] c /=; [exact: ler01 | exact: mulr_ge0]. Qed.

Lemma walk_le n c f g :
  (forall x, size x = n -> f x <= g x) -> walk r n c f <= walk r n c g.
Proof.
move=> fg; rewrite !walk_sum; apply: ler_sum => x _.
by rewrite ler_wpmul2l ?path_prob_ge0 // fg // size_tuple.
Qed.

Lemma walk_ge0 n c f : (forall x, 0 <= f x) -> 0 <= walk r n c f.
Proof. by move=> f0; rewrite -(walk0 n c); exact: walk_le. Qed.

Lemma walk_prefix n c a : (size a <= n)%N ->
  walk r n c (fun x => (prefix a x)%:R) = path_prob r c a.
Proof.
elim: n c a => [|n IH] c [|t a] //= an.
- by rewrite -[LHS]/(walk r n.+1 c (fun=> 1)) walk1 //; exact: r_row.2.
- rewrite -[LHS]/(walk r n.+1 c (fun x => (prefix (t :: a) x)%:R)) walkS.
  rewrite (bigD1 t) //= big1 ?addr0 => [|u /negbTE ut].
    by rewrite -IH //; congr (_ * _); apply: walk_ext => x _; rewrite eqxx.
  rewrite -[X in _ * X = _](@walk_ext _ _ _ _ _ (fun=> 0)) ?walk0 ?mulr0 // => x _.
  by rewrite eq_sym ut.
Qed.

(* the law of a walk: the product of the rows on sequences of length n *)
Lemma walk_law n c b : Pr (walk r n c) b = (size b == n)%:R * path_prob r c b.
Proof.
rewrite /Pr; have [<-|bn] := eqVneq (size b) n.
  rewrite mul1r -(walk_prefix _ (leqnn _)); apply: walk_ext => x xb.
  by rewrite prefixE -xb take_size eq_sym.
rewrite mul0r -(walk0 n c); apply: walk_ext => x xn.
by case: eqP => // xb; rewrite -xb xn eqxx in bn.
Qed.

End Walk2.
