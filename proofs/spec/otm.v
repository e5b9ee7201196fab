(* Optimal transport at one position (OTM): spectr2023, Section 5, with any   *)
(* transport plan from K independent drafts to the target.                    *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.common spec.draft_selection.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section OTM.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
(* q the draft row, pi(x, y) the plan; res0: any row, for drafts that have     *)
(* probability 0                                                              *)
Variables (q : T -> F) (plan : seq T -> T -> F) (res0 : T -> F).

(* P(x), x = x_1, .., x_K                                                     *)
Definition drafts_prob (x : seq T) : F := path_prob N (fun _ : seq T => q) [::] x.
(* Section 3, f_pi: given the drafts x, y has the probability pi(x, y) / P(x)  *)
Definition otm_row (x : seq T) (y : T) : F :=
  if equal N (drafts_prob x) (zero N) then res0 y else div N (plan x y) (drafts_prob x).
Definition otm_choose (x : seq T) : M F T := draw N vocabulary (otm_row x).

(* K drafts of one position                                                   *)
Definition otm (K : nat) : M F T :=
  x <- several K (draw N vocabulary q);; otm_choose x.
End OTM.
