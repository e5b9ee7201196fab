(* Greedy multi-path block verification: greedy2026, Algorithm 1.             *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas spec.block.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section GreedyMultipath.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T).
(* Definition 5.2: lower c t t' says that t is ranked below t' at c.          *)
Variable lower : seq T -> T -> T -> bool.
Notation "0" := (zero N).
Notation "1" := (one N).
Notation "a + b" := (add N a b).
Notation "a - b" := (subtract N a b).
Notation "a * b" := (mul N a b).

(* Eq. 21: t is below t' where p/q is smaller; where equal, by the order of   *)
(* the tokens, earlier.                                                       *)
Definition by_ratio (earlier : T -> T -> bool) (c : seq T) (t t' : T) : bool :=
  let a := ratio N p q u c t in let b := ratio N p q u c t' in
  if equal N a b then earlier t t' else equal N (max N a b) b.

(* line 2: the lexicographic order of two paths after c                       *)
Fixpoint path_lower (c x y : seq T) : bool :=
  match x, y with
  | t :: x', t' :: y' =>
      if lower c t t' then true else if lower c t' t then false
      else path_lower (rcons c t) x' y'
  | _, _ => false
  end.
(* line 3: the highest of the K drafted paths; K = 1 + more                   *)
Fixpoint highest (q : model F T) (L more : nat) : M F (seq T) :=
  x <- walk N vocabulary q L [::];;
  if more is more'.+1 then
    y <- highest q L more';; ret (if path_lower [::] x y then y else x)
  else ret x.

(* Eqs. 22, 23: with weight = q(a_{1:j}) at c = a_{1:j}, the sum over j <= i-1 *)
(* of q(a_{1:j}) times the row's mass of the tokens below a_{j+1}             *)
Fixpoint mass_below (weight : F) (c a : seq T) : F :=
  if a is t :: a' then
    weight * sum N vocabulary (fun t' => if lower c t' t then q c t' else 0)
    + mass_below (weight * q c t) (rcons c t) a'
  else 0.
Fixpoint power (a : F) (K : nat) : F := if K is K'.+1 then a * power a K' else 1.
Definition skewed (K : nat) (a : seq T) : F :=
  let below := mass_below 1 [::] a in
  power (path_prob N q [::] a + below) K - power below K.
(* Eq. 14: the rows of a law with these masses; q where the mass is 0         *)
Definition rows_of (mass : seq T -> F) : model F T := fun c t =>
  if equal N (mass c) 0 then q c t else div N (mass (rcons c t)) (mass c).

Definition greedy_multipath (L more : nat) : M F (seq T * T) :=
  x <- highest q L more;;                                      (* lines 1 to 3 *)
  block N vocabulary p (rows_of (skewed more.+1)) u L x.       (* lines 4 to 6 *)
End GreedyMultipath.
