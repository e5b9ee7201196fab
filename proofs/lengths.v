(* Which verifiers are lossless under every length rule: 8.3.                 *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks lossless optimal adaptive.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lengths.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Implicit Types (a b c x : seq T) (f g : seq T -> F) (stop : seq T -> bool).

(* rules that never stop                                                      *)
Lemma adraft_walk stop n c g : (forall b, ~~ stop (c ++ b)) ->
  adraft q stop n c g = walk q n c g.
Proof.
elim: n c g => [//|n IH] c g go; have := go [::]; rewrite cats0 walkS /= => /negbTE ->.
rewrite /bind /ret drawE; apply: eq_bigr => t _; congr (_ * _).
by apply: IH => b; rewrite cat_rcons.
Qed.

(* the rule that stops at a = c ++ b, and nowhere else                        *)
Lemma adraft_at n c b g : (size b <= n)%N ->
  adraft q (pred1 (c ++ b)) n c g - walk q n c g
  = path_prob q c b * (g b - walk q (n - size b) (c ++ b) (fun z => g (b ++ z))).
Proof.
elim: b n c g => [|t b IH] [|n] c g //= bn; rewrite ?cats0 ?subrr ?mul1r //.
  by rewrite eqxx.
rewrite ifF; last first.
  apply/negbTE/negP => /eqP /(congr1 (@size T)) /eqP.
  by rewrite size_cat -[X in X == _]addn0 eqn_add2l.
rewrite -[X in _ - X]/(walk q n.+1 c g) walkS /bind /ret drawE -sumrB (bigD1 t) //= big1 ?addr0.
  rewrite -mulrBr -mulrA subSS; congr (_ * _).
  by rewrite -cat_rcons (IH n (rcons c t)).
move=> t' tt'; rewrite -mulrBr adraft_walk ?subrr ?mulr0 // => b' /=.
rewrite cat_rcons eqseq_cat // eqxx /= eqseq_cons (negbTE tt') //.
Qed.

Variables (V : nat -> verifier F T) (N : nat).

(* coherent at the texts that can be drafted                                  *)
Definition coherent_where_drafted : Prop := forall x f,
  (size x < N)%N -> path_prob q [::] x != 0 ->
  \sum_t q x t * handed p V N (rcons x t) f = handed p V N x f.

Theorem lengths_iff :
  (forall stop f, (x <- adraft q stop N [::];; handed p V N x) f = walk p N.+1 [::] f) <->
  (forall f, handed p V N [::] f = walk p N.+1 [::] f) /\ coherent_where_drafted.
Proof.
split=> [all|[start coh] stop f].
  have start f : handed p V N [::] f = walk p N.+1 [::] f.
    by rewrite -(all (pred1 [::])); case: N.
  split=> // x f xN x0.
  have full : walk q N [::] (fun z => handed p V N z f) = walk p N.+1 [::] f.
    by rewrite -(all pred0) /bind adraft_walk.
  have at_ a : (size a <= N)%N -> path_prob q [::] a != 0 ->
      handed p V N a f = walk q (N - size a) a (fun z => handed p V N (a ++ z) f).
    move=> aN a0; have := adraft_at [::] (fun z => handed p V N z f) aN.
    have := all (pred1 a) f; rewrite /bind /= => ->; rewrite full subrr => /esym /eqP.
    by rewrite mulf_eq0 (negbTE a0) /= subr_eq0 => /eqP.
  rewrite (at_ x (ltnW xN) x0) -subnSK // walkS; apply: eq_bigr => t _.
  have [->|q0] := eqVneq (q x t) 0; first by rewrite !mul0r.
  congr (_ * _); rewrite at_ ?size_rcons //; last by rewrite path_prob_rcons mulf_neq0.
  by apply: walk_ext => z _; rewrite cat_rcons.
rewrite -start /bind.
suff H n c : (size c + n <= N)%N -> path_prob q [::] c != 0 ->
    adraft q stop n c (fun x => handed p V N (c ++ x) f) = handed p V N c f.
  by apply: H => //; exact: oner_neq0.
elim: n c => [|n IH] c cN c0; first by rewrite /= /ret cats0.
rewrite /=; case: (stop c); first by rewrite /ret cats0.
have cN' : (size c < N)%N by apply: leq_trans cN; rewrite -addn1 leq_add2l.
rewrite -coh // /bind /ret drawE; apply: eq_bigr => t _.
have [->|q0] := eqVneq (q c t) 0; first by rewrite !mul0r.
congr (_ * _); rewrite -IH ?size_rcons ?addSnnS //; last by rewrite path_prob_rcons mulf_neq0.
by apply: eq_adraft => x; rewrite cat_rcons.
Qed.
End Lengths.
