(* Block verification: block2024, Algorithm 2.                                *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Block.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T).
Notation "1" := (one N).

(* p_i = min(p_{i-1} p(X_i | X^{i-1}) / q(X_i | X^{i-1}), 1)                  *)
Definition next_weight (c : seq T) (w : F) (t : T) : F :=
  min N (mul N w (ratio N p q u c t)) 1.
(* Eq. 5 for i < L: h_i at c = X^i with w = p_i                               *)
Definition accept_prob (c : seq T) (w : F) : F :=
  let gain := total_gain N vocabulary p q c w in
  let denominator := subtract N (add N gain 1) w in
  if equal N denominator (zero N) then h0 u c else div N gain denominator.

(* Lines 3 to 11. c = X^{i-1}, rest = X_i, .., X_L, w = p_{i-1}, and          *)
(* best = (X^tau, p_tau) so far. There is no break: the last success counts.  *)
Fixpoint block_loop (c rest : seq T) (w : F) (best : seq T * F) : M F (seq T * F) :=
  if rest is t :: rest' then                                   (* line 3      *)
    let c' := rcons c t in
    let w' := next_weight c w t in                             (* line 4      *)
    let h := if rest' is [::] then w' else accept_prob c' w' in  (* line 5, Eq. 5; h_L = p_L *)
    accepted <- coin N h;;                                     (* line 6      *)
    block_loop c' rest' w' (if accepted then (c', w') else best)  (* lines 7 to 9 *)
  else ret best.

Definition block (L : nat) (x : seq T) : M F (seq T * T) :=
  '(s, w) <- block_loop [::] x 1 ([::], 1);;                   (* lines 2 to 11 *)
  y <- correction N vocabulary p q u L s w;;                   (* lines 12 to 16, Eq. 4 *)
  ret (s, y).                                                  (* line 17     *)
End Block.
