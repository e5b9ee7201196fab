(* K-SEQ at one position: spectr2023, Algorithm 2, with division factor rho.  *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.common.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section KSeq.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variables (p q : T -> F) (rho : F) (ratio0 res0 : T -> F).
Notation "1" := (one N).
Notation "a - b" := (subtract N a b).
Notation "a * b" := (mul N a b).
Notation "a / b" := (div N a b).

(* line 4: min(p(x) / (rho q(x)), 1), the probability of accepting the draft x *)
Definition kseq_accept (x : T) : F :=
  min N (if equal N (q x) (zero N) then ratio0 x else p x / (rho * q x)) 1.
(* line 1: beta(rho) = sum of min(q(x), p(x) / rho)                            *)
Definition beta : F := sum N vocabulary (fun x => min N (q x) (p x / rho)).
(* line 1: 1 - p_acc = (1 - beta)^K                                            *)
Fixpoint missed (K : nat) : F := if K is K'.+1 then (1 - beta) * missed K' else 1.
(* Eq. 5, the residual: (p - min(q, p/rho) p_acc/beta) / (1 - p_acc)           *)
Definition kseq_residual (K : nat) (x : T) : F :=
  if equal N (missed K) (zero N) then res0 x
  else (p x - min N (q x) (p x / rho) * ((1 - missed K) / beta)) / missed K.

(* the drafts are tested in turn *)
Fixpoint kseq_loop (K left : nat) : M F T :=
  if left is left'.+1 then
    x <- draw N vocabulary q;; accepted <- coin N (kseq_accept x);;  (* lines 2 to 4 *)
    if accepted then ret x else kseq_loop K left'              (* line 5      *)
  else draw N vocabulary (kseq_residual K).                    (* line 8      *)
Definition kseq (K : nat) : M F T := kseq_loop K K.

(* the same for drafts that are given; K is their number                      *)
Fixpoint kseq_tests (K : nat) (drafts : seq T) : M F T :=
  if drafts is x :: others then
    accepted <- coin N (kseq_accept x);;
    if accepted then ret x else kseq_tests K others
  else draw N vocabulary (kseq_residual K).
End KSeq.
