(* What a reader has to trust, first part: numbers, random programs, drafts   *)
(* and losslessness. Nothing is proved in the folder spec. Notation of        *)
(* docs/theory.md: p target, q draft, L draft length.                         *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- Numbers. The programs use these nine names and nothing else. The      *)
(* theorems take an ordered field (file field.v), the extracted programs      *)
(* take the exact rationals of zarith (file extraction/bridge.ml).            *)
Record numbers (F : Type) := Numbers {
  zero : F; one : F;
  add : F -> F -> F; subtract : F -> F -> F; mul : F -> F -> F; div : F -> F -> F;
  max : F -> F -> F; min : F -> F -> F; equal : F -> F -> bool }.

Section Programs.
(* F: the numbers. T: the tokens. vocabulary: the list of all tokens.         *)
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Implicit Types (c x s : seq T) (t y : T) (w h : F).
Notation "0" := (zero N).
Notation "1" := (one N).
Notation "a + b" := (add N a b).
Notation "a - b" := (subtract N a b).
Notation "a * b" := (mul N a b).

(* the sum of g over the vocabulary *)
Definition sum (g : T -> F) : F := foldr (fun t total => g t + total) 0 vocabulary.

(* ---- Random programs. A program that returns an A is given by its          *)
(* expectations: it maps f to the mean of f(result).                          *)
Definition M (A : Type) : Type := (A -> F) -> F.
(* return a *)
Definition ret (A : Type) (a : A) : M A := fun f => f a.
(* run m, call the result a, and go on with k a; written  a <- m;; k a        *)
Definition bind (A B : Type) (m : M A) (k : A -> M B) : M B := fun f => m (fun a => k a f).
(* the same for a pair (a, b); written  '(a, b) <- m;; k a b                  *)
Definition bind2 (A B C : Type) (m : M (A * B)) (k : A -> B -> M C) : M C :=
  fun f => m (fun o => k o.1 o.2 f).
(* a token with the probabilities of the row r *)
Definition draw (r : T -> F) : M T := fun f => sum (fun t => r t * f t).
(* the event eta <= h of a fresh uniform number eta: it has probability h     *)
Definition coin h : M bool := fun f => h * f true + (1 - h) * f false.

Notation "a <- m ;; k" := (bind m (fun a => k)) (at level 61, m at next level, right associativity).
Notation "'( a , b ) <- m ;; k" := (bind2 m (fun a b => k))
  (at level 61, a name, b name, m at next level, right associativity).

(* ---- Models. A model r gives a row r c at every context c: r c t is the    *)
(* probability of the token t after c. It may depend on all of c.             *)
Definition model : Type := seq T -> T -> F.

(* n tokens of the model r, one after the other, after the context c          *)
Fixpoint walk (r : model) (n : nat) c : M (seq T) :=
  if n is n'.+1 then t <- draw (r c);; x <- walk r n' (rcons c t);; ret (t :: x) else ret [::].
(* their probability: r(x | c), the product of the rows along x               *)
Fixpoint path_prob (r : model) c x : F :=
  if x is t :: x' then r c t * path_prob r (rcons c t) x' else 1.

(* ---- One call. A verifier maps a drafted path x to a program that returns  *)
(* the accepted tokens X^tau and one more token Y.                            *)
Definition verifier : Type := seq T -> M (seq T * T).
(* block2024 Algorithm 3, lines 2 and 4: draft L tokens, verify them          *)
Definition iteration (q : model) (L : nat) (verify : verifier) : M (seq T * T) :=
  x <- walk q L [::];; verify x.
(* the output of a call, continued to L + 1 tokens by the target              *)
Definition continued (p : model) (L : nat) (call : M (seq T * T)) : M (seq T) :=
  '(s, y) <- call;; u <- walk p (L - size s) (rcons s y);; ret (rcons s y ++ u).
(* a call is lossless: its continued output is distributed as L + 1 tokens of *)
(* the target (docs/theory.md section 1), in the mean of every function       *)
Definition lossless_call (p : model) (L : nat) (call : M (seq T * T)) : Prop :=
  forall f, continued p L call f = walk p L.+1 [::] f.
Definition lossless (p q : model) (L : nat) (verify : verifier) : Prop :=
  lossless_call p L (iteration q L verify).
End Programs.

Notation "a <- m ;; k" := (bind m (fun a => k)) (at level 61, m at next level, right associativity).
Notation "'( a , b ) <- m ;; k" := (bind2 m (fun a b => k))
  (at level 61, a name, b name, m at next level, right associativity).
