(* The kept-draft criterion, 8.1 (i) and (ii): which drafts a verifier of      *)
(* variable length may be handed.                                             *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import field walks distributions lossless optimal adaptive.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Kept.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Implicit Types (x : seq T) (f : seq T -> F).

(* the draft that is handed over, continued to L tokens by the rows handed in *)
Definition completed_draft L (kept : M F (seq T)) : M F (seq T) :=
  x <- kept;; z <- walk q (L - size x) x;; ret (x ++ z).
(* its law is the law that the rows claim: the draft defect is 0              *)
Definition draft_law_right L kept : Prop :=
  forall f, completed_draft L kept f = walk q L [::] f.

Lemma coherent_walk V L n x f : coherent p q V L -> (size x + n <= L)%N ->
  handed p V L x f = walk q n x (fun z => handed p V L (x ++ z) f).
Proof.
move=> coh; elim: n x => [|n IH] x xn; first by rewrite walk0E cats0.
have xL : (size x < L)%N by apply: leq_trans xn; rewrite -addn1 leq_add2l.
rewrite walkS -coh //; apply: eq_bigr => t _; congr (_ * _).
rewrite IH ?size_rcons ?addSnnS //; apply: walk_ext => z _.
by rewrite cat_rcons.
Qed.

Variables (L : nat) (V : nat -> verifier F T) (kept : M F (seq T)).
Hypotheses (V_coherent : coherent p q V L) (kept_dist : dist (fun x => size x <= L)%N kept).

(* (i) the output is that of the completed draft at the fixed length L        *)
Theorem kept_output f :
  (x <- kept;; handed p V L x) f = (y <- completed_draft L kept;; handed p V L y) f.
Proof.
apply: (dist_supp kept_dist) => x xL.
by rewrite (coherent_walk (n := L - size x)) // subnKC.
Qed.

(* (ii) lossless, for every target, if the completed draft has the law that   *)
(* its rows claim                                                             *)
Theorem kept_lossless f : draft_law_right L kept ->
  handed p V L [::] f = walk p L.+1 [::] f ->
  (x <- kept;; handed p V L x) f = walk p L.+1 [::] f.
Proof.
move=> right fixed; rewrite kept_output -fixed (coherent_walk (n := L)) //.
exact: right.
Qed.
End Kept.

Section KeptPrinted.
Variables (F : realFieldType) (T : finType) (p q : model F T) (cv : convention F T).
Hypotheses (p_row : is_row p) (q_row : is_row q) (cv_proper : proper cv).
Variables (L : nat) (kept : M F (seq T)).
Hypotheses (kept_dist : dist (fun x => size x <= L)%N kept) (right : draft_law_right q L kept).

Corollary kept_token f : (x <- kept;; handed p (token p q cv) L x) f = walk p L.+1 [::] f.
Proof.
apply: kept_lossless => //; first exact: token_coherent.
exact: handed_nil.
Qed.

Corollary kept_block f : (x <- kept;; handed p (block p q cv) L x) f = walk p L.+1 [::] f.
Proof.
apply: kept_lossless => //; first exact: block_coherent.
exact: handed_nil.
Qed.
End KeptPrinted.
