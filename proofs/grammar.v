(* A sampled draft that is cut at its first forbidden token: 8.19 (iii).      *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks lossless recursive.
From Spectheory Require Import spec.recursive_rejection.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Cut.
Variables (F : realFieldType) (T : finType) (cv : convention F T) (p q : T -> F).
Variable forbidden : pred T.
Hypotheses (p_row : prob_row p) (q_row : prob_row q).
(* the target's row is masked                                                 *)
Hypothesis masked : forall t, forbidden t -> p t = 0.
Notation always r := (fun _ : seq T => r).
Notation accept t := (Num.min (ratio (always p) (always q) cv [::] t) 1).
Notation rejected := (residual (always p) (always q) cv [::] 1).

(* one position: a forbidden draft is dropped and the token is drawn from the *)
(* masked row, another one is tested as always                                *)
Definition cut : M F T :=
  x <- draw q;;
  if forbidden x then draw p
  else ok <- coin (accept x);; if ok then ret x else draw rejected.
Definition forbidden_mass : F := \sum_(t | forbidden t) q t.

Let pR := always_row p_row.
Let qR := always_row q_row.

Lemma accepted_mass t : q t * accept t = p t - gain (always p) (always q) [::] 1 t.
Proof. by have := @accepted F T _ _ cv pR qR [::] 1 t ler01; rewrite next_weightE !mul1r. Qed.

Lemma forbidden_accept t : forbidden t -> q t * accept t = 0.
Proof.
move=> bad; rewrite accepted_mass gainE (masked bad) mulr0 !sub0r max_r ?oppr0 //.
by rewrite oppr_le0 q_row.1.
Qed.

(* the output is off the target by q(forbidden) (p - r), r the residual       *)
Theorem cut_error f : cut f - draw p f = forbidden_mass * (draw p f - draw rejected f).
Proof.
set R := draw rejected f; set P := draw p f; set S := total_gain (always p) (always q) [::] 1.
have E t : q t * (if forbidden t then draw p f
      else coin (accept t) (fun ok => (if ok then ret t else draw rejected) f))
    = q t * accept t * f t + (q t - q t * accept t) * R
      + (if forbidden t then q t else 0) * (P - R).
  case: ifP => bad; last by rewrite coinE mul0r addr0 /ret -/R; ring.
  by rewrite forbidden_accept // -/P; ring.
have SR : S * R = \sum_t gain (always p) (always q) [::] 1 t * f t.
  rewrite /R drawE big_distrr; apply: eq_bigr => t _ /=.
  by rewrite mulrA gain_residual.
rewrite -[cut f]/(draw q (fun t => (if forbidden t then draw p
  else ok <- coin (accept t);; if ok then ret t else draw rejected) f)) drawE.
transitivity (\sum_t (q t * accept t * f t + (q t - q t * accept t) * R
      + (if forbidden t then q t else 0) * (P - R)) - P).
  by congr (_ - _); apply: eq_bigr => t _; rewrite -E; case: ifP.
rewrite !big_split /= -!big_distrl /= sumrB q_row.2 -big_mkcond /= -/forbidden_mass.
have -> : \sum_t q t * accept t = 1 - S.
  by under eq_bigr do rewrite accepted_mass; rewrite sumrB p_row.2 -total_gainE.
have -> : \sum_t q t * accept t * f t = P - S * R.
  rewrite SR /P drawE -sumrB; apply: eq_bigr => t _; rewrite accepted_mass; ring.
by ring.
Qed.

(* lossless if and only if nothing is cut, or the residual is the target      *)
Theorem cut_lossless : (forall f, cut f = draw p f) <->
  forbidden_mass = 0 \/ forall t, rejected t = p t.
Proof.
have at_ (r : T -> F) t : draw r (fun y => (y == t)%:R) = r t.
  rewrite drawE (bigD1 t) //= eqxx mulr1 big1 ?addr0 // => y /negbTE ->.
  by rewrite mulr0.
split=> [right|same f].
  have [->|n0] := eqVneq forbidden_mass 0; [by left|right=> t].
  have := cut_error (fun y => (y == t)%:R); rewrite right subrr => /esym /eqP.
  by rewrite mulf_eq0 (negbTE n0) /= !at_ subr_eq0 => /eqP ->.
apply/eqP; rewrite -subr_eq0 cut_error; apply/eqP; case: same => [->|same]; first by rewrite mul0r.
rewrite (_ : draw rejected f = draw p f) ?subrr ?mulr0 // !drawE.
by apply: eq_bigr => t _; rewrite same.
Qed.

(* to count the cut as a rejection is lossless                                *)
Corollary cut_as_rejection f :
  recursive_rejection (field_numbers F) (tokens T) cv [:: q] p f = draw p f.
Proof. by rewrite recursive_rejection_lossless ?drawE // => -[]. Qed.
End Cut.
