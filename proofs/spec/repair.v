(* Drafts of any rule, repaired: docs/theory.md 8.10 B. One more token that    *)
(* the target never draws ends the draft.                                     *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.common.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Repair.
Variables (F : Type) (N : numbers F) (T : eqType).
(* option T has the tokens Some t, and None, the token that ends the draft    *)

(* a text without the tokens None                                             *)
Definition kept_text (c : seq (option T)) : seq T := pmap id c.
(* the target's rows: None has probability 0                                  *)
Definition repaired_target (p : model F T) : model F (option T) :=
  fun c t => if t is Some t' then p (kept_text c) t' else zero N.
(* the draft that is handed over, filled up to L tokens with None             *)
Definition filled (L : nat) (x : seq T) : seq (option T) :=
  map Some x ++ nseq (L - size x) None.

(* the draft rows. kept is any program that returns a draft of at most L      *)
(* tokens; mass a = P(the filled draft starts with a)                         *)
Variables (L : nat) (kept : M F (seq T)).
Definition filled_mass (a : seq (option T)) : F :=
  kept (fun x => if prefix a (filled L x) then one N else zero N).
Definition repaired_draft : model F (option T) := fun c t =>
  if (L <= size c) || equal N (filled_mass c) (zero N)
  then (if t is None then one N else zero N)
  else div N (filled_mass (rcons c t)) (filled_mass c).

(* verify : any verifier of L drafted tokens, over option T                   *)
Definition repaired (verify : verifier F (option T)) : M F (seq (option T) * option T) :=
  x <- kept;; verify (filled L x).
End Repair.
