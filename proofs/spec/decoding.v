(* Speculative decoding, several calls: block2024, Algorithm 3.               *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.common.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Decoding.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).

(* the rows of the model r after the text c *)
Definition behind (r : model F T) (c : seq T) : model F T := fun c' => r (c ++ c').

(* n calls after the text c. The draft length and the verifier may depend on  *)
(* the text (verify c is the verifier for the rows behind c).                 *)
Variables (q : model F T) (L : seq T -> nat) (verify : seq T -> verifier F T).
Fixpoint specdec (n : nat) (c : seq T) : M F (seq T) :=
  if n is n'.+1 then                                            (* line 1     *)
    '(s, y) <- iteration N vocabulary (behind q c) (L c) (verify c);;  (* lines 2 to 4 *)
    x <- specdec n' (c ++ rcons s y);; ret (rcons s y ++ x)     (* line 5     *)
  else ret [::].
End Decoding.
