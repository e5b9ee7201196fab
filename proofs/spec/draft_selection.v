(* Several paths, position by position: spectr2023, Algorithm 3, with any     *)
(* choice of the next token; and naive sampling (specinfer2023).              *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.common.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* K independent runs of a program: Eq. 7, if it draws one path               *)
Fixpoint several (F A : Type) (K : nat) (m : M F A) : M F (seq A) :=
  if K is K'.+1 then x <- m;; xs <- several K' m;; ret (x :: xs) else ret [::].

Section DraftSelection.
Variables (F : Type) (N : numbers F) (T : eqType) (vocabulary : seq T).
Variables (p q : model F T).
(* the choice of the next token, given the text and the next drafted tokens   *)
Variable choose : seq T -> seq T -> M F T.

(* S_z: the next token of each path that has one                              *)
Definition next_tokens (paths : seq (seq T)) : seq T := pmap ohead paths.
(* S_next: the paths that agree with y, behind it                             *)
Definition agree (y : T) (paths : seq (seq T)) : seq (seq T) :=
  [seq behead x | x <- paths & ohead x == Some y].

(* n = the length of the paths; c = the tokens that were accepted             *)
Fixpoint selection (n : nat) (c : seq T) (paths : seq (seq T)) : M F (seq T * T) :=
  if n is n'.+1 then
    y <- choose c (next_tokens paths);;                        (* lines 1, 2  *)
    if nilp (agree y paths) then ret (c, y)                    (* lines 8, 11 to 13 *)
    else selection n' (rcons c y) (agree y paths)              (* line 15     *)
  else y <- draw N vocabulary (p c);; ret (c, y).              (* lines 4 to 6 *)

(* K independent paths of L tokens                                            *)
Definition draft_selection (L K : nat) : M F (seq T * T) :=
  paths <- several K (walk N vocabulary q L [::]);; selection L [::] paths.
End DraftSelection.

Section NaiveSampling.
Variables (F : Type) (N : numbers F) (T : eqType) (vocabulary : seq T) (p : model F T).
(* Y is drawn from the target, whatever was drafted                           *)
Definition naive_sampling (L : nat) (paths : seq (seq T)) : M F (seq T * T) :=
  selection N vocabulary p (fun c _ => draw N vocabulary (p c)) L [::] paths.
End NaiveSampling.
