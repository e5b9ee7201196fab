(* What a reader has to trust, second part: the words of the theorems. The    *)
(* numbers are an ordered field F (for instance the rationals), the tokens    *)
(* any finite type T. Nothing is proved in the folder spec.                   *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import spec.formulas.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* the nine names of common.v in an ordered field *)
Definition field_numbers (F : realFieldType) : numbers F :=
  Numbers 0 1 (fun a b => a + b) (fun a b => a - b) (fun a b => a * b) (fun a b => a / b)
    Num.max Num.min (fun a b => a == b).

Section Statements.
Variables (F : realFieldType) (T : finType).

(* m is a probability distribution on results with the property P            *)
Record dist (A : Type) (P : A -> Prop) (m : M F A) : Prop := Dist {
  dist_supp : forall f g, (forall a, P a -> f a = g a) -> m f = m g;
  dist_add : forall f g, m (fun a => f a + g a) = m f + m g;
  dist_scale : forall k f, m (fun a => k * f a) = k * m f;
  dist_pos : forall f, (forall a, 0 <= f a) -> 0 <= m f;
  dist_one : m (fun=> 1) = 1 }.

(* the rows of a model are probability rows                                   *)
Definition is_row (r : model F T) : Prop :=
  (forall c t, 0 <= r c t) /\ (forall c, \sum_t r c t = 1).
(* a convention for 0/0 that leaves probabilities probabilities               *)
Definition proper (u : convention F T) : Prop :=
  [/\ forall c t, 0 <= ratio0 u c t, forall c, 0 <= h0 u c <= 1 & is_row (res0 u)].
(* given the path x, the verifier returns a prefix of x and a token, at random *)
Definition sane (verify : verifier F T) (x : seq T) : Prop :=
  dist (fun o => prefix o.1 x) (verify x).

(* P(m = a); P(X^tau starts with a); P(tau >= i); E[tau]                      *)
Definition Pr (A : eqType) (m : M F A) (a : A) : F := m (fun b => (b == a)%:R).
Definition node_mass (call : M F (seq T * T)) (a : seq T) : F :=
  call (fun o => (prefix a o.1)%:R).
Definition tau_ge (call : M F (seq T * T)) (i : nat) : F :=
  call (fun o => (i <= size o.1)%N%:R).
Definition mean_tau (call : M F (seq T * T)) : F := call (fun o => (size o.1)%:R).
(* half the sum of |P(m = a) - P(m' = a)| over the sequences a of n tokens     *)
Definition total_variation (n : nat) (m m' : M F (seq T)) : F :=
  (\sum_(a : n.-tuple T) `|Pr m a - Pr m' a|) / 2%:R.
End Statements.
