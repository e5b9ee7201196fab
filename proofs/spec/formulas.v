(* The formulas that verifiers share: block2024 (Sun et al.), Eqs. 1, 3 and 4.  *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Export spec.common.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Formulas.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Implicit Types (c s : seq T) (t : T) (w : F).

(* The papers leave three quotients undefined where their denominator is 0.   *)
(* These are the values taken there: any values.                              *)
Record convention := Convention {
  ratio0 : model F T;  (* p/q where q is 0                                    *)
  h0 : seq T -> F;     (* Eq. 5 where its denominator is 0                    *)
  res0 : model F T }.  (* the rows of Eqs. 3 and 4 where their denominator is 0 *)
Variables (p q : model F T) (u : convention).

(* p(t | c) / q(t | c), the quotient of Eq. 1                                  *)
Definition ratio c t : F := if equal N (q c t) (zero N) then ratio0 u c t else div N (p c t) (q c t).
(* the numerators of Eqs. 3 and 4: max(w p(t | c) - q(t | c), 0), and their    *)
(* sum over the vocabulary, the denominator                                   *)
Definition gain c w t : F := max N (subtract N (mul N w (p c t)) (q c t)) (zero N).
Definition total_gain c w : F := sum N vocabulary (gain c w).
(* Eq. 4; Eq. 3 is the case w = 1                                             *)
Definition residual c w t : F :=
  if equal N (total_gain c w) (zero N) then res0 u c t else div N (gain c w t) (total_gain c w).
(* Algorithm 1, lines 11 to 15, and Algorithm 2, lines 12 to 16: the token Y  *)
Definition correction (L : nat) s w : M F T :=
  if eqn (size s) L then draw N vocabulary (p s) else draw N vocabulary (residual s w).
End Formulas.
