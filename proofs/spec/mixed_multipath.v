(* The first draft or the highest one, then block verification:               *)
(* docs/theory.md Statement 5.8, mixed_multipath.                             *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas spec.block spec.greedy_multipath.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section MixedMultipath.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T).
Variable lower : seq T -> T -> T -> bool.
(* lambda, which may depend on the rows after the text, not on the drafts     *)
Variable lambda : F.

(* with probability lambda the first of K = 1 + more drafts, else the highest *)
Definition first_or_highest (L more : nat) : M F (seq T) :=
  x <- walk N vocabulary q L [::];;
  if more is more'.+1 then
    y <- highest N vocabulary lower q L more';; first <- coin N lambda;;
    ret (if first then x else if path_lower lower [::] x y then y else x)
  else ret x.

(* r = lambda q + (1 - lambda) q^Gamma *)
Definition mixed_mass (K : nat) (a : seq T) : F :=
  add N (mul N lambda (path_prob N q [::] a))
        (mul N (subtract N (one N) lambda) (skewed N vocabulary q lower K a)).

Definition mixed_multipath (L more : nat) : M F (seq T * T) :=
  x <- first_or_highest L more;;
  block N vocabulary p (rows_of N q (mixed_mass more.+1)) u L x.
End MixedMultipath.
