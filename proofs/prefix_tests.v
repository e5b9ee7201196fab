(* Verifiers of one path that test every prefix by itself and keep the        *)
(* longest accepted one: what their stops and node masses are.                *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section PrefixTests.
Variables (F : realFieldType) (T : finType) (q : model F T) (L : nat).
Hypothesis q_row : is_row q.
Implicit Types (c a s x best : seq T) (t : T) (k : seq T -> F).

(* accept s is the probability that the test of the drafted prefix s succeeds *)
Variable accept : seq T -> F.
Fixpoint tests_loop c rest best : M F (seq T) :=
  if rest is t :: rest' then
    let c' := rcons c t in
    accepted <- coin (accept c');;
    tests_loop c' rest' (if accepted then c' else best)
  else ret best.

(* w(s) is to be P(tau >= |s|) given that s is drafted                        *)
Variable w : seq T -> F.
(* P(tau > |s|) given that s is drafted                                       *)
Definition longer s : F := \sum_t q s t * w (rcons s t).
Hypothesis w_start : w [::] = 1.
Hypothesis accept_end : forall s, size s = L -> path_prob q [::] s != 0 -> accept s = w s.
Hypothesis accept_mid : forall s, (size s < L)%N -> path_prob q [::] s != 0 ->
  (1 - longer s) * accept s = w s - longer s.

(* the mean of k(X^tau) on tau >= |c|, given that c is drafted; n = L - |c|    *)
Fixpoint stops k n c : F :=
  if n is n'.+1 then (w c - longer c) * k c + \sum_t q c t * stops k n' (rcons c t)
  else w c * k c.

Lemma drafted_rcons c t : path_prob q [::] c != 0 -> q c t != 0 -> path_prob q [::] (rcons c t) != 0.
Proof. by move=> c0 q0; rewrite path_prob_rcons mulf_neq0. Qed.

Definition tests_step k c x best : F :=
  accept c * tests_loop c x c k + (1 - accept c) * tests_loop c x best k.

Lemma tests_main k n c best : (size c + n)%N = L -> path_prob q [::] c != 0 ->
  walk q n c (fun x => tests_step k c x best) = stops k n c + (1 - w c) * k best.
Proof.
elim: n c best => [|n IH] c best cL c0.
  by rewrite walk0E /tests_step /= /ret accept_end // -cL addn0.
have B b : walk q n.+1 c (fun x => tests_loop c x b k) =
    \sum_t q c t * stops k n (rcons c t) + (1 - longer c) * k b.
  rewrite walkS.
  have E t : q c t * walk q n (rcons c t) (fun x => tests_loop c (t :: x) b k)
      = q c t * stops k n (rcons c t) + (q c t - q c t * w (rcons c t)) * k b.
    have [->|q0] := eqVneq (q c t) 0; first by rewrite !mul0r subrr mul0r addr0.
    rewrite (IH (rcons c t)) ?size_rcons ?addSnnS // ?drafted_rcons //; ring.
  under eq_bigr do rewrite E.
  by rewrite big_split /= -[X in _ + X]big_distrl /= sumrB q_row.2.
have cltL : (size c < L)%N by rewrite -cL -[X in (X < _)%N]addn0 ltn_add2l.
have := accept_mid cltL c0; rewrite /tests_step walkD !walkZ !B /=.
set a := accept c; set l := longer c; set S := \sum_t _ => H.
have -> : a * (S + (1 - l) * k c) + (1 - a) * (S + (1 - l) * k best)
  = S + ((1 - l) * a) * k c + (1 - l - (1 - l) * a) * k best by ring.
by rewrite H; ring.
Qed.

Theorem tests_stops k :
  walk q L [::] (fun x => tests_loop [::] x [::] k) = stops k L [::].
Proof.
case E: L => [|n]; first by rewrite walk0E /= w_start mul1r.
rewrite walkS /= w_start.
have S t : q [::] t * walk q n [:: t] (fun x => tests_loop [::] (t :: x) [::] k)
    = q [::] t * stops k n [:: t] + (q [::] t - q [::] t * w [:: t]) * k [::].
  have [->|q0] := eqVneq (q [::] t) 0; first by rewrite !mul0r subrr mul0r addr0.
  rewrite (@tests_main k n [:: t] [::]) ?E // ?path_probE ?mulr1 //; ring.
under eq_bigr do rewrite S.
by rewrite big_split /= -[X in _ + X]big_distrl /= sumrB q_row.2 addrC.
Qed.

Lemma stops_ext k k' n c : (forall s, (size s <= size c + n)%N -> k s = k' s) ->
  stops k n c = stops k' n c.
Proof.
elim: n c => [|n IH] c kk /=; rewrite kk ?leq_addr //; congr (_ + _).
apply: eq_bigr => t _; rewrite IH // => s sn; apply: kk.
by rewrite size_rcons addSnnS in sn.
Qed.

(* P(X^tau starts with a) = w(a) q(a)                                          *)
Lemma stops_from k n c : (forall s, prefix c s -> k s = 1) -> stops k n c = w c.
Proof.
elim: n c => [|n IH] c one; first by rewrite /= one ?prefix_refl ?mulr1.
rewrite /= one ?prefix_refl // mulr1.
have E t : q c t * stops k n (rcons c t) = q c t * w (rcons c t).
  by rewrite IH // => s cs; apply: one; apply: prefix_trans cs; exact: prefix_rcons.
by under eq_bigr do rewrite E; rewrite subrK.
Qed.

Lemma stops_off k n c : (forall s, prefix c s -> k s = 0) -> stops k n c = 0.
Proof.
elim: n c => [|n IH] c zero; first by rewrite /= zero ?prefix_refl ?mulr0.
rewrite /= zero ?prefix_refl // mulr0 add0r big1 // => t _; rewrite IH ?mulr0 // => s cs.
by apply: zero; apply: prefix_trans cs; exact: prefix_rcons.
Qed.

Lemma stops_prefix n c a : (size a <= n)%N ->
  stops (fun s => (prefix (c ++ a) s)%:R) n c = path_prob q c a * w (c ++ a).
Proof.
elim: a n c => [|t a IH] n c; first by rewrite cats0 mul1r => _; apply: stops_from => s ->.
case: n => [//|n] an; rewrite /= (_ : prefix _ c = false) ?mulr0 ?add0r; last first.
  by apply/negP => /size_prefix; rewrite size_cat /= addnS -addSn leqNgt ltn_addr // ltnS.
rewrite (bigD1 t) //= big1 ?addr0 => [|t' tt'].
  by rewrite -cat_rcons IH // mulrA.
rewrite stops_off ?mulr0 // => s cs; case E: (prefix _ s) => //.
move: cs E => /prefixP[s' ->]; rewrite cat_rcons prefix_catr ?eqxx //= .
by rewrite eq_sym (negbTE tt').
Qed.
End PrefixTests.
