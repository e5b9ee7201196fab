(* Greedy block verification: block2024, Appendix C, Algorithms 4 and 5.      *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section GreedyBlock.
Variables (F : Type) (N : numbers F) (T : Type) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T) (L : nat).
Notation "0" := (zero N).
Notation "1" := (one N).

(* lines 4 and 12: p~_i = p~_{i-1} p(X_i | X^{i-1}) / q(X_i | X^{i-1}), no minimum *)
Definition greedy_weight (c : seq T) (w : F) (t : T) : F := mul N w (ratio N p q u c t).
(* line 5: the denominator of h_i at c = X^i with w = p~_i                     *)
Definition total_loss (c : seq T) (w : F) : F :=
  sum N vocabulary (fun t => max N (subtract N (q c t) (mul N w (p c t))) 0).
(* line 5, and the event eta_i <= h_i; a positive number / 0 is infinite      *)
Definition greedy_accept (c : seq T) (w : F) : F :=
  let gain := total_gain N vocabulary p q c w in
  let loss := total_loss c w in
  if equal N loss 0 then (if equal N gain 0 then h0 u c else 1) else min N (div N gain loss) 1.

(* lines 3 to 15: c = X^{i-1}, rest = X_i, .., X_L, w = p~_{i-1}, and          *)
(* best = (X^tau, p~_tau) so far                                               *)
Fixpoint greedy_block_loop (c rest : seq T) (w : F) (best : seq T * F) : M F (seq T * F) :=
  if rest is t :: rest' then
    let c' := rcons c t in
    let w' := greedy_weight c w t in                           (* lines 4, 12 *)
    let h := if rest' is [::] then min N w' 1 else greedy_accept c' w' in  (* lines 13, 5 *)
    accepted <- coin N h;;                                     (* lines 6, 13 *)
    greedy_block_loop c' rest' w' (if accepted then (c', w') else best)  (* lines 7 to 9, 14 *)
  else ret best.

Definition greedy_block (x : seq T) : M F (seq T * T) :=
  '(s, w) <- greedy_block_loop [::] x 1 ([::], 1);;            (* lines 2 to 15 *)
  y <- correction N vocabulary p q u L s w;;                   (* lines 14, 16 *)
  ret (s, y).                                                  (* line 18     *)

(* Algorithm 5, Eq. 31: max(p(a) - q(a), 0), with the probabilities of whole  *)
(* texts, and the rows of the tokens up to the L-th                           *)
Definition excess (a : seq T) : F :=
  max N (subtract N (path_prob N p [::] a) (path_prob N q [::] a)) 0.
Definition modified : model F T := fun c t =>
  let total := sum N vocabulary (fun t' => excess (rcons c t')) in
  if equal N total 0 then res0 u c t else div N (excess (rcons c t)) total.
(* Lemma 8: the first L tokens, X^tau, Y, Z^{L-tau-1}                          *)
Definition greedy_block_text : M F (seq T) :=
  '(s, y) <- iteration N vocabulary q L greedy_block;;
  z <- walk N vocabulary modified (L - (size s).+1) (rcons s y);;
  ret (take L (rcons s y ++ z)).
End GreedyBlock.
