(* Coherence in the draft length, and lengths that depend on the drafts (8.1, 8.2). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Adaptive.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Variable cv : convention F T.
Hypothesis cv_proper : proper cv.
Implicit Types (c x s : seq T) (t : T) (w : F).

(* drafting with a length rule, at most n tokens behind c *)
Fixpoint adraft (stop : seq T -> bool) n c : M F (seq T) :=
  if n is m.+1 then
    if stop c then ret [::]
    else t <- draw (q c);; x <- adraft stop m (rcons c t);; ret (t :: x)
  else ret [::].

Lemma eq_adraft stop n c (f g : seq T -> F) : (forall x, f x = g x) ->
  adraft stop n c f = adraft stop n c g.
Proof.
elim: n c f g => [|n IH] c f g fg /=; first exact: fg.
case: (stop c); first exact: fg.
rewrite /bind /ret !drawE; apply: eq_bigr => t _; congr (_ * _).
by apply: IH => x; exact: fg.
Qed.

(* the completed output (N+1 tokens) when x is handed over: the verifier     *)
(* does not know the rule, it is run with draft length size x                *)
Definition handed (V : nat -> verifier F T) N x : M F (seq T) :=
  '(s, y) <- V (size x) x;;
  u <- walk p (N - size s) (rcons s y);; ret (rcons s y ++ u).

Definition coherent V N : Prop :=
  forall x f, (size x < N)%N ->
    \sum_t q x t * handed V N (rcons x t) f = handed V N x f.

Theorem coherent_adaptive V stop N f : coherent V N ->
  handed V N [::] f = walk p N.+1 [::] f ->
  (x <- adraft stop N [::];; handed V N x) f = walk p N.+1 [::] f.
Proof.
move=> coh <-; rewrite /bind.
suff H n c : (size c + n <= N)%N ->
    adraft stop n c (fun x => handed V N (c ++ x) f) = handed V N c f by apply: H.
elim: n c => [|n IH] c cN; first by rewrite /= /ret cats0.
rewrite /=; case: (stop c); first by rewrite /ret cats0.
have cN' : (size c < N)%N by apply: leq_trans cN; rewrite -addn1 leq_add2l.
rewrite -coh // /bind /ret drawE; apply: eq_bigr => t _; congr (_ * _).
rewrite -IH ?size_rcons ?addSnnS //.
by apply: eq_adraft => x; rewrite cat_rcons.
Qed.

(* value of stopping at s, if the draft length is n *)
Let val N f n s w : F :=
  correction p q cv n s w (fun y => cont p (N - size s) (rcons s y) f).

Lemma val_early N f n n' s w : (size s < n)%N -> (size s < n')%N ->
  val N f n s w = val N f n' s w.
Proof. by move=> sn sn'; rewrite /val !correctionE !ltn_eqF. Qed.

Lemma val_end N f s w : (size s <= N)%N ->
  val N f (size s) s w = cont p (N - size s).+1 s f.
Proof. by move=> sN; rewrite /val correctionE eqxx contS drawE. Qed.

Lemma val_mid N f n s w : (size s < n)%N -> (size s < N)%N ->
  total_gain p q s w * val N f n s w
  = \sum_t gain p q s w t * cont p (N - size s) (rcons s t) f.
Proof.
move=> sn sN; rewrite /val correctionE ltn_eqF // drawE big_distrr /=.
by apply: eq_bigr => t _; rewrite mulrA gain_residual.
Qed.

(* ---- token ---- *)
Lemma token_coherent_loop N f x c : (size c + size x < N)%N ->
  \sum_t q (c ++ x) t * token_loop p q cv c (rcons x t)
                          (fun s => val N f (size c + size x).+1 s 1)
  = token_loop p q cv c x (fun s => val N f (size c + size x) s 1).
Proof.
elim: x c => [|u x IH] c.
  rewrite cats0 /= addn0 => cN; rewrite /bind /coin /ret /=.
  set k := val N f _ c 1.
  have E t : q c t * (Num.min (ratio p q cv c t) 1 *
                   val N f (size c).+1 (rcons c t) 1
               + (1 - Num.min (ratio p q cv c t) 1) * k) =
      (p c t - gain p q c 1 t) * cont p (N - size c) (rcons c t) f
      + (q c t - p c t + gain p q c 1 t) * k.
    have A : q c t * next_weight p q cv c 1 t = 1 * p c t - gain p q c 1 t.
      by apply: accepted => //; exact: ler01.
    rewrite next_weightE !mul1r in A.
    have -> : val N f (size c).+1 (rcons c t) 1 = cont p (N - size c) (rcons c t) f.
      by rewrite -(size_rcons c t) val_end size_rcons // subnSK.
    by rewrite -A mulrDr !mulrA mulrBr mulr1 A; congr (_ + _ * _); ring.
  under eq_bigr do rewrite E.
  rewrite big_split /= -[X in _ + X]big_distrl /= big_split sumrB /= q_row.2 p_row.2.
  rewrite subrr add0r -total_gainE /k val_mid // -big_split /=.
  rewrite val_end ?(ltnW cN) // contS; apply: eq_bigr => t _.
  by rewrite -mulrDl subrK.
rewrite /= addnS -addSn -(size_rcons c u) -cat_rcons => cN.
rewrite /bind /coin /ret /= -(IH (rcons c u)) //; set h := Num.min _ _.
rewrite big_distrr /=; under eq_bigr do rewrite mulrDr.
rewrite big_split /= -big_distrl /= q_row.2 mul1r; congr (_ + _ * _).
  by apply: eq_bigr => t _; rewrite mulrCA.
by apply: val_early; rewrite ?size_rcons ?addSn ?addnS ?ltnS ?leqW ?leq_addr.
Qed.

Lemma handed_nil (V : nat -> verifier F T) N f : (forall g, V 0%N [::] g = draw (p [::]) (fun y => g ([::], y))) ->
  handed V N [::] f = walk p N.+1 [::] f.
Proof.
move=> V0; rewrite walkS /handed /bind2 [LHS]V0 !drawE.
apply: eq_bigr => t _; congr (_ * _); rewrite /bind /ret subn0; exact: walk_ext.
Qed.

Theorem token_coherent N : coherent (token p q cv) N.
Proof.
move=> x f xN; rewrite -[RHS](@token_coherent_loop N f x [::] xN).
by apply: eq_bigr => t _; rewrite /handed size_rcons.
Qed.

Corollary token_adaptive stop N f :
  (x <- adraft stop N [::];; handed (token p q cv) N x) f = walk p N.+1 [::] f.
Proof. by apply: coherent_adaptive; [exact: token_coherent | exact: handed_nil]. Qed.

(* ---- block ---- *)
Notation step N f n := (@step F T p q cv (fun b => val N f n b.1 b.2)).

Lemma step_cons N f n c u x w b : step N f n c (u :: x) w b =
  accept_prob p q cv c w * step N f n (rcons c u) x (next_weight p q cv c w u) (c, w)
  + (1 - accept_prob p q cv c w) * step N f n (rcons c u) x (next_weight p q cv c w u) b.
Proof. by []. Qed.

Lemma block_coherent_step N f x c w b : (size c + size x < N)%N -> 0 <= w <= 1 ->
  (size b.1 < size c)%N ->
  \sum_t q (c ++ x) t * step N f (size c + size x).+1 c (rcons x t) w b
  = step N f (size c + size x) c x w b.
Proof.
elim: x c w b => [|u x IH] c w b.
  rewrite cats0 addn0 => cN w01 bc.
  have := @block_main F T p q cv p_row q_row (size c).+1 c
    (fun b => val N f (size c).+1 b.1 b.2) (fun s => cont p (N.+1 - size s) s f) _ _ _
    1 c w b.
  rewrite addn1 prefix_refl => H.
  transitivity (walk q 1 c (fun x => step N f (size c).+1 c x w b)); first by rewrite walkS.
  rewrite H // => {H}.
  - rewrite -[RHS]/(w * val N f (size c) c w + (1 - w) * val N f (size c) b.1 b.2).
    rewrite val_end ?(ltnW cN) // subSn ?(ltnW cN) //.
    by rewrite (val_early N f b.2 (leqW bc) bc).
  - move=> s _ sc; rewrite subSn; last exact: ltnW (leq_trans sc cN).
    by rewrite contS; apply: eq_bigr => t _; rewrite size_rcons subSS.
  - by move=> s w' _ sc /=; rewrite -{1}sc val_end sc // subSn.
  - move=> s w' _ sc /=; rewrite val_mid //; last by exact: leq_trans sc cN.
    by apply: eq_bigr => t _; rewrite size_rcons subSS.
move=> cN w01 bc; have /andP[w0 w1] := w01.
have w'01 : 0 <= next_weight p q cv c w u <= 1 by exact: next_weight_01.
have sE : (size c + size (u :: x) = size (rcons c u) + size x)%N.
  by rewrite size_rcons addnS.
rewrite sE in cN *; rewrite step_cons.
have b1 : (size (c, w).1 < size (rcons c u))%N by rewrite size_rcons.
have b2 : (size b.1 < size (rcons c u))%N by rewrite size_rcons (leqW bc).
rewrite -(IH _ _ _ cN w'01 b1) -(IH _ _ _ cN w'01 b2).
rewrite !big_distrr -big_split /= cat_rcons; apply: eq_bigr => t _.
by rewrite step_cons; ring.
Qed.

Theorem block_coherent N : coherent (block p q cv) N.
Proof.
case=> [|u x] f xN.
  (* one drafted token: block and token verification are the same *)
  rewrite -[RHS](token_coherent f xN); apply: eq_bigr => t _; congr (_ * _).
  rewrite -[LHS]/(next_weight p q cv [::] 1 t * val N f 1 [:: t] (next_weight p q cv [::] 1 t)
                  + (1 - next_weight p q cv [::] 1 t) * val N f 1 [::] 1).
  by rewrite next_weightE mul1r.
have b0 : (size (([::], 1%R) : seq T * F).1 < size [:: u])%N by [].
have w01 : 0 <= next_weight p q cv [::] 1 u <= 1 by apply: next_weight_01 => //; exact: ler01.
rewrite -[RHS](@block_coherent_step N f x [:: u] (next_weight p q cv [::] 1 u) ([::], 1) xN w01 b0).
by apply: eq_bigr => t _; rewrite /handed size_rcons.
Qed.

Corollary block_adaptive stop N f :
  (x <- adraft stop N [::];; handed (block p q cv) N x) f = walk p N.+1 [::] f.
Proof. by apply: coherent_adaptive; [exact: block_coherent | exact: handed_nil]. Qed.
End Adaptive.
