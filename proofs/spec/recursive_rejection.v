(* Recursive rejection at one position: docs/theory.md Statement 3.7, of K    *)
(* drafts, each from its own row; Eqs. 1 and 3 of block2024 with p_k for p.   *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section RecursiveRejection.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variable u : convention F T.
(* a row as a model that does not depend on the context                       *)
Notation always r := (fun _ : seq T => r).

(* r is p_k: the drafts are tested in turn, draft k against p_k               *)
Fixpoint recursive_rejection (drafts : seq (T -> F)) (r : T -> F) : M F T :=
  if drafts is q :: others then
    x <- draw N vocabulary q;;
    accepted <- coin N (min N (ratio N (always r) (always q) u [::] x) (one N));;
    if accepted then ret x
    else recursive_rejection others (residual N vocabulary (always r) (always q) u [::] (one N))
  else draw N vocabulary r.

(* the same for drafts x_1, .., x_K that are given, all from the row q         *)
Fixpoint recursive_tests (q : T -> F) (x : seq T) (r : T -> F) : M F T :=
  if x is x1 :: others then
    accepted <- coin N (min N (ratio N (always r) (always q) u [::] x1) (one N));;
    if accepted then ret x1
    else recursive_tests q others (residual N vocabulary (always r) (always q) u [::] (one N))
  else draw N vocabulary r.
End RecursiveRejection.
