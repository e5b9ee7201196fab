(* Token verification: block2024, Algorithm 1 (Leviathan et al. 2023).        *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Token.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T).

(* Lines 3 to 10. c = X^{i-1} has been accepted; rest = X_i, .., X_L.         *)
Fixpoint token_loop (c rest : seq T) : M F (seq T) :=
  if rest is t :: rest' then                                   (* line 3      *)
    accepted <- coin N (min N (ratio N p q u c t) (one N));;   (* lines 4, 5  *)
    if accepted then token_loop (rcons c t) rest'              (* line 6      *)
    else ret c                                                 (* lines 7, 8  *)
  else ret c.

Definition token (L : nat) (x : seq T) : M F (seq T * T) :=
  s <- token_loop [::] x;;                                     (* lines 2 to 10 *)
  y <- correction N vocabulary p q u L s (one N);;             (* lines 11 to 15, Eq. 3 *)
  ret (s, y).                                                  (* line 16     *)
End Token.
