(* Recursive rejection of drafts that are drawn without replacement, along a  *)
(* tree: spectr2023, footnote 8; docs/theory.md Statement 3.7.                *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section WithoutReplacement.
Variables (F : Type) (N : numbers F) (T : eqType) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T).
Notation "0" := (zero N).
Notation always r := (fun _ : seq T => r).

(* q without the drafts xs, normalised: the row of the next draft             *)
Definition without (q : T -> F) (xs : seq T) : T -> F := fun t =>
  let kept s := if s \in xs then 0 else q s in
  let total := sum N vocabulary kept in
  if equal N total 0 then res0 u xs t else div N (kept t) total.

(* One position: n drafts are left, row xs is the row of the next one, r is    *)
(* p_k. Returns the token, and whether it is an accepted draft.               *)
Fixpoint distinct_rejection (n : nat) (row : seq T -> T -> F) (xs : seq T) (r : T -> F) :
    M F (T * bool) :=
  if n is n'.+1 then
    x <- draw N vocabulary (row xs);;
    accepted <- coin N (min N (ratio N (always r) (always (row xs)) u [::] x) (one N));;
    if accepted then ret (x, true)
    else distinct_rejection n' row (rcons xs x)
           (residual N vocabulary (always r) (always (row xs)) u [::] (one N))
  else y <- draw N vocabulary r;; ret (y, false).

(* K :: Ks: K drafts behind c, and behind each of them a tree of Ks. The tree  *)
(* behind a draft is independent of all else, so it is drawn when the draft   *)
(* is accepted.                                                               *)
Fixpoint distinct_tree (Ks : seq nat) (c : seq T) : M F (seq T * T) :=
  if Ks is K :: Ks' then
    '(y, accepted) <- distinct_rejection K (without (q c)) [::] (p c);;
    if accepted then distinct_tree Ks' (rcons c y) else ret (c, y)
  else y <- draw N vocabulary (p c);; ret (c, y).
End WithoutReplacement.
