(* A tree of independent drafts, position by position: spectr2023, Appendix D *)
(* draws the tree, Algorithm 3 goes along it. Drafts with the same token are  *)
(* one draft with the children of all of them.                                *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.common spec.draft_selection.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* a drafted token with what was drafted behind it                            *)
Inductive tree (T : Type) : Type := Node of T & seq (tree T).
Definition root (T : Type) (x : tree T) : T := let: Node t _ := x in t.
Definition children (T : Type) (x : tree T) : seq (tree T) := let: Node _ xs := x in xs.

Section TreeSelection.
Variables (F : Type) (N : numbers F) (T : eqType) (vocabulary : seq T).
Variables (p q : model F T).
Variable choose : seq T -> seq T -> M F T.

(* Algorithm 4, lines 2 to 6, K :: Ks: K independent drafts behind c, each     *)
(* with the tree of Ks behind it                                              *)
Fixpoint draft_tree (Ks : seq nat) (c : seq T) : M F (seq (tree T)) :=
  if Ks is K :: Ks' then
    several K (t <- draw N vocabulary (q c);; xs <- draft_tree Ks' (rcons c t);;
               ret (Node t xs))
  else ret [::].

(* the drafts behind y                                                        *)
Definition behind_token (y : T) (drafts : seq (tree T)) : seq (tree T) :=
  flatten [seq children x | x <- drafts & root x == y].

(* Algorithm 3 *)
Fixpoint tree_selection (n : nat) (c : seq T) (drafts : seq (tree T)) : M F (seq T * T) :=
  if (n, drafts) is (n'.+1, _ :: _) then
    y <- choose c (map (@root T) drafts);;                     (* lines 1, 2  *)
    if y \in map (@root T) drafts
    then tree_selection n' (rcons c y) (behind_token y drafts) (* lines 11, 15 *)
    else ret (c, y)                                            (* lines 8, 12, 13 *)
  else y <- draw N vocabulary (p c);; ret (c, y).              (* lines 4 to 6 *)

Definition tree_verification (L : nat) (Ks : seq nat) : M F (seq T * T) :=
  drafts <- draft_tree Ks [::];; tree_selection L [::] drafts.
End TreeSelection.
