(* Trees position by position: lossless, with every choice that is lossless   *)
(* at one position.                                                           *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless recursive.
From Spectheory Require Import spec.draft_selection spec.recursive_rejection spec.tree_selection.
From Spectheory Require Import selection multi_round.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Notation draft_tree := (tree_selection.draft_tree numF (tokens _)).
Notation tree_selection := (tree_selection.tree_selection numF (tokens _)).
Notation tree_verification := (tree_selection.tree_verification numF (tokens _)).

Section Trees.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Variable choose : seq T -> seq T -> M F T.
Hypotheses (p_row : is_row p) (q_row : is_row q).
Hypothesis choose_dist : forall c xs, xs != [::] -> dist (fun=> True) (choose c xs).
(* lossless at one position, for every number of drafts                       *)
Hypothesis choose_lossless : forall c K f, (0 < K)%N ->
  (xs <- several K (draw (q c));; choose c xs) f = draw (p c) f.
Implicit Types (c xs : seq T) (zs : seq (tree T)) (y : T) (Ks : seq nat).

(* one draft behind c, with its tree                                          *)
Definition node Ks c : M F (tree T) :=
  t <- draw (q c);; xs <- draft_tree q Ks (rcons c t);; ret (Node t xs).

Lemma draft_treeE Ks c : draft_tree q Ks c = several (head 0%N Ks) (node (behead Ks) c).
Proof. by case: Ks. Qed.

Lemma draft_tree_dist Ks c : dist (fun=> True) (draft_tree q Ks c).
Proof.
elim: Ks c => [|K Ks IH] c; first exact: dist_ret.
have nd : dist (fun=> True) (node Ks c).
  apply: (dist_bind (dist_draw (q_row.1 c) (q_row.2 c))) => t _.
  by apply: (dist_bind (IH _)) => xs _; exact: dist_ret.
by apply: (dist_weaken _ (dist_several K nd)).
Qed.

Lemma node_dist Ks c : dist (fun=> True) (node Ks c).
Proof.
apply: (dist_bind (dist_draw (q_row.1 c) (q_row.2 c))) => t _.
by apply: (dist_bind (draft_tree_dist _ _)) => xs _; exact: dist_ret.
Qed.

Lemma several_add (A : Type) (P : A -> Prop) (m : M F A) j k (f : seq A -> F) : dist P m ->
  several (j + k) m f = several j m (fun a : seq A => several k m (fun b => f (a ++ b))).
Proof.
move=> dm; elim: j f => [//|j IH] f; rewrite addSn !severalS.
by apply: (dist_supp dm) => x _; rewrite IH.
Qed.

(* drafts with the tokens xs, each with a tree of its own                     *)
Fixpoint with_trees Ks c xs : M F (seq (tree T)) :=
  if xs is x :: xs' then
    z <- draft_tree q Ks (rcons c x);; zs <- with_trees Ks c xs';; ret (Node x z :: zs)
  else ret [::].

Lemma with_trees_dist Ks c xs : dist (fun zs => map (@root T) zs = xs) (with_trees Ks c xs).
Proof.
elim: xs => [|x xs IH] /=; first exact: dist_ret.
apply: (dist_bind (draft_tree_dist _ _)) => z _; apply: (dist_bind IH) => zs zsx.
by apply: dist_ret; rewrite /= zsx.
Qed.

Let draws_dist K c : dist (fun xs => size xs = K) (several K (draw (q c))).
Proof. exact: dist_several (dist_draw (q_row.1 c) (q_row.2 c)). Qed.

Lemma several_node K Ks c f :
  several K (node Ks c) f = several K (draw (q c)) (fun xs => with_trees Ks c xs f).
Proof.
elim: K f => [//|K IH] f; rewrite !severalS /node /bind !drawE.
apply: eq_bigr => t _; congr (_ * _); rewrite /= /bind /ret (several_draw K (q c) c).
rewrite (@swap_walk _ _ _ _ _ _ _ _ (fun z xs => with_trees Ks c xs (fun zs => f (Node t z :: zs)))
  (draft_tree_dist Ks (rcons c t))).
apply: (dist_supp (draft_tree_dist Ks (rcons c t))) => z _.
by rewrite -(several_draw K (q c) c) -IH.
Qed.

(* the drafts behind y are independent again                                  *)
Lemma with_trees_behind Ks c xs y f :
  with_trees Ks c xs (fun zs => f (behind_token y zs))
  = several (count_mem y xs * head 0%N Ks) (node (behead Ks) (rcons c y)) f.
Proof.
elim: xs f => [//|x xs IH] f; rewrite /= /bind /ret /behind_token /=.
have [->|xy] := eqVneq x y.
  rewrite /= mulSn (several_add _ _ _ (node_dist _ _)) -draft_treeE.
  apply: (dist_supp (draft_tree_dist Ks (rcons c y))) => z _.
  exact: (IH (fun zs => f (z ++ zs))).
by rewrite (dist_const _ (draft_tree_dist _ _)) IH.
Qed.

Variable L : nat.

Lemma tree_main f n c K Ks : (size c + n)%N = L ->
  several K (node Ks c) (fun zs => tree_selection p choose n c zs
    (fun o => cont p (L - size o.1) (rcons o.1 o.2) f)) = cont p n.+1 c f.
Proof.
set k := fun o : seq T * T => _.
have stop m c' : (size c' + m)%N = L ->
    (y <- draw (p c');; ret (c', y)) k = cont p m.+1 c' f.
  by move=> cL; rewrite /bind /ret /k /= drawE contS -cL addKn.
elim: n c K Ks => [|n IH] c K Ks cL.
  rewrite -(stop _ _ cL) -[RHS](dist_const _ (dist_several K (node_dist Ks c))).
  by apply: (dist_supp (dist_several K (node_dist Ks c))) => zs _.
case: K => [|K]; first by rewrite -(stop _ _ cL).
rewrite several_node contS -drawE -(choose_lossless _ _ (ltn0Sn K)).
apply: (dist_supp (draws_dist K.+1 c)) => xs xsK.
have xs0 : xs != [::] by case: xs xsK.
transitivity (with_trees Ks c xs (fun zs => choose c xs (fun y =>
    (if y \in xs then tree_selection p choose n (rcons c y) (behind_token y zs) k
     else k (c, y))))).
  apply: (dist_supp (with_trees_dist Ks c xs)) => zs zsx.
  case: zs zsx => [|z zs] zsx; first by rewrite -zsx in xs0.
  rewrite /= -[root z :: _]/(map (@root T) (z :: zs)) zsx /bind.
  by apply: (dist_supp (choose_dist c xs0)) => y _; case: ifP.
rewrite (swap_fin _ (with_trees_dist Ks c xs) (choose_dist c xs0)).
apply: (dist_supp (choose_dist c xs0)) => y _.
case: (y \in xs); last first.
  by rewrite (dist_const _ (with_trees_dist Ks c xs)) /k /= -cL addKn.
rewrite (with_trees_behind Ks c xs y (fun zs => tree_selection p choose n (rcons c y) zs k)).
by rewrite IH // size_rcons addSnnS.
Qed.

Theorem tree_lossless Ks : lossless_call p L (tree_verification p q choose L Ks).
Proof.
move=> f; rewrite -[RHS]/(cont p L.+1 [::] f) -(@tree_main f L [::] (head 0%N Ks) (behead Ks)) //.
by rewrite -draft_treeE.
Qed.
End Trees.

Section RecursiveTrees.
Variables (F : realFieldType) (T : finType) (p q : model F T) (cv : convention F T).
Hypotheses (p_row : is_row p) (q_row : is_row q) (cv_proper : proper cv).
Notation tests := (recursive_tests (field_numbers F) (tokens T) cv).

(* recursive rejection along a tree with any numbers of children              *)
Theorem recursive_tree_lossless L Ks :
  lossless_call p L (tree_verification p q (fun c x => tests (q c) x (p c)) L Ks).
Proof.
have [[p0 p1] [q0 q1]] := (p_row, q_row); apply: tree_lossless => //.
- by move=> c xs _; apply: tests_dist => //; split.
- by move=> c k f _; apply: tests_lossless => //; split.
Qed.
End RecursiveTrees.
