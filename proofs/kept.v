(* The kept-draft criterion, 8.1 (i), (ii), (iv): which drafts a verifier of *)
(* variable length may be handed.                                             *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
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

(* ---- (iv) the target is the draft: everything is accepted ---- *)
Section KeptSame.
Variables (F : realFieldType) (T : finType) (q : model F T) (cv : convention F T).
Hypothesis q_row : is_row q.
Implicit Types (x c : seq T) (f : seq T -> F).

Lemma ratio_same c t : q c t != 0 -> ratio q q cv c t = 1.
Proof. by move=> q0; rewrite ratioE (negbTE q0) divff. Qed.

Lemma token_loop_same c x (g : seq T -> F) : path_prob q c x != 0 ->
  token_loop q q cv c x g = g (c ++ x).
Proof.
elim: x c => [|t x IH] c; first by rewrite cats0.
rewrite path_probE mulf_eq0 negb_or => /andP[q0 x0].
by rewrite token_loopE ratio_same // minxx subrr mul0r addr0 mul1r IH // cat_rcons.
Qed.

Lemma block_loop_same c t x b (g : seq T * F -> F) : path_prob q c (t :: x) != 0 ->
  block_loop q q cv c (t :: x) 1 b g = g (c ++ t :: x, 1).
Proof.
elim: x c t b => [|t' x IH] c t b; rewrite path_probE mulf_eq0 negb_or => /andP[q0 x0];
  rewrite block_loopE next_weightE mul1r ratio_same // minxx.
  by rewrite /= subrr mul0r addr0 mul1r /ret cats1.
have E b' : block_loop q q cv (rcons c t) (t' :: x) 1 b' g = g (c ++ [:: t, t' & x], 1).
  by rewrite IH // cat_rcons.
by cbv zeta; rewrite !E; ring.
Qed.

(* what is handed over, and one more token of q                               *)
Lemma correction_same L m x w f : size x = L ->
  correction q q cv L x w (fun y => walk q m (rcons x y) (fun z => f (rcons x y ++ z)))
  = walk q m.+1 x (fun z => f (x ++ z)).
Proof.
move=> xL; rewrite correctionE xL eqxx drawE walkS; apply: eq_bigr => t _; congr (_ * _).
by apply: walk_ext => z _; rewrite cat_rcons.
Qed.

Lemma handed_token_same L x f : path_prob q [::] x != 0 ->
  handed q (token q q cv) L x f = walk q (L - size x).+1 x (fun z => f (x ++ z)).
Proof.
move=> x0; rewrite -(@correction_same (size x) (L - size x) x 1 f) //.
by rewrite /handed /bind2 /token.token /bind token_loop_same.
Qed.

Lemma handed_block_same L x f : path_prob q [::] x != 0 ->
  handed q (block q q cv) L x f = walk q (L - size x).+1 x (fun z => f (x ++ z)).
Proof.
move=> x0; rewrite -(@correction_same (size x) (L - size x) x 1 f) //.
case: x x0 => [//|t x] x0.
by rewrite /handed /bind2 /block.block /bind2 /bind block_loop_same.
Qed.

Lemma walk_add (r : model F T) n m c f : walk r (n + m) c f =
  walk r n c (fun x => walk r m (c ++ x) (fun z => f (x ++ z))).
Proof.
elim: n c f => [|n IH] c f; first by rewrite walk0E cats0.
rewrite addSn !walkS; apply: eq_bigr => t _; congr (_ * _); rewrite IH.
by apply: walk_ext => x _; rewrite cat_rcons.
Qed.

Variables (L : nat) (V : nat -> verifier F T) (kept : M F (seq T)).
Hypothesis V_same : forall x f, path_prob q [::] x != 0 ->
  handed q V L x f = walk q (L - size x).+1 x (fun z => f (x ++ z)).
(* nothing is kept that the draft cannot draw                                 *)
Hypothesis kept_dist :
  dist (fun x => (size x <= L)%N /\ path_prob q [::] x != 0) kept.

Lemma same_output f : (x <- kept;; handed q V L x) f =
  completed_draft q L kept (fun y => walk q 1 y (fun z => f (y ++ z))).
Proof.
apply: (dist_supp kept_dist) => x [xL x0]; rewrite V_same // -addn1 walk_add /bind /ret.
by apply: walk_ext => z _; apply: walk_ext => y _; rewrite catA.
Qed.

Lemma same_converse :
  (forall f, (x <- kept;; handed q V L x) f = walk q L.+1 [::] f) -> draft_law_right q L kept.
Proof.
move=> right f.
have := right (fun z => f (take L z)); rewrite same_output -[L.+1]addn1 walk_add => E.
transitivity (completed_draft q L kept (fun y => walk q 1 y (fun z => f (take L (y ++ z))))).
  apply: (dist_supp kept_dist) => x [xL _]; apply: walk_ext => z zL.
  have xz : size (x ++ z) = L by rewrite size_cat zL subnKC.
  rewrite /ret -[LHS](walk1 q_row.2 1 (x ++ z)); apply: walk_ext => y _.
  by rewrite take_cat xz ltnn subnn take0 cats0.
rewrite E; apply: walk_ext => x xL; rewrite -[RHS](walk1 q_row.2 1 x).
by apply: walk_ext => y _; rewrite take_cat xL ltnn subnn take0 cats0.
Qed.

(* the law of the completed draft, and of the output                          *)
Lemma completed_size : dist (fun y => size y = L) (completed_draft q L kept).
Proof.
apply: (dist_bind kept_dist) => x [xL _].
apply: (dist_bind (dist_walk _ _ q_row)) => z zL; apply: dist_ret.
by rewrite size_cat zL subnKC.
Qed.

Lemma one_more_law (a : seq T) t (y : seq T) : size a = size y ->
  walk q 1 y (fun z => (y ++ z == rcons a t)%:R) = q a t * (y == a)%:R.
Proof.
move=> ay; rewrite walkS.
have E t' : walk q 0 (rcons y t') (fun z => (y ++ t' :: z == rcons a t)%:R)
    = (y == a)%:R * (t' == t)%:R :> F.
  by rewrite walk0E cats1 eqseq_rcons -natrM mulnb.
under eq_bigr do rewrite E.
rewrite (bigD1 t) //= eqxx mulr1 big1 ?addr0 => [|t' /negbTE ->]; last by rewrite !mulr0.
by case: eqP => [->|_]; rewrite // !mulr0.
Qed.

Lemma sum_walk n (g : seq T -> F) : \sum_(b : n.-tuple T) g b = walk (fun _ _ => 1) n [::] g.
Proof.
rewrite walk_sum; apply: eq_bigr => b _.
rewrite (_ : path_prob _ _ _ = 1) ?mul1r //.
by elim: (val b) [::] => [|t x IH] c //=; rewrite IH mulr1.
Qed.

Lemma same_variation :
  total_variation L.+1 (x <- kept;; handed q V L x) (walk q L.+1 [::])
  = total_variation L (completed_draft q L kept) (walk q L [::]).
Proof.
rewrite /total_variation; congr (_ / _).
rewrite (sum_walk L.+1 (fun b => `|Pr _ b - Pr _ b|)) (sum_walk L (fun b => `|Pr _ b - Pr _ b|)) -[L.+1]addn1 walk_add.
apply: walk_ext => a aL; rewrite walkS.
transitivity (\sum_t q a t * `|Pr (completed_draft q L kept) a - Pr (walk q L [::]) a|); last first.
  by rewrite -big_distrl /= q_row.2 mul1r.
apply: eq_bigr => t _; rewrite walk0E mul1r cats1.
rewrite -[in RHS](ger0_norm (q_row.1 a t)) -normrM mulrBr; congr (`|_ - _|).
  rewrite /Pr same_output -(dist_scale completed_size).
  by apply: (dist_supp completed_size) => y yL; rewrite one_more_law // aL.
rewrite !walk_law // size_rcons aL addn1 !eqxx !mul1r path_prob_rcons //.
by rewrite mulrC.
Qed.
End KeptSame.

Section KeptConverse.
Variables (F : realFieldType) (T : finType) (q : model F T) (cv : convention F T).
Hypotheses (q_row : is_row q) (cv_proper : proper cv).
Variables (L : nat) (kept : M F (seq T)).
Hypothesis kept_dist :
  dist (fun x => (size x <= L)%N /\ path_prob q [::] x != 0) kept.

(* the defect at the target p = q is the draft defect                         *)
Theorem kept_token_defect :
  total_variation L.+1 (x <- kept;; handed q (token q q cv) L x) (walk q L.+1 [::])
  = total_variation L (completed_draft q L kept) (walk q L [::]).
Proof. by apply: same_variation => // x f; exact: handed_token_same. Qed.

Theorem kept_block_defect :
  total_variation L.+1 (x <- kept;; handed q (block q q cv) L x) (walk q L.+1 [::])
  = total_variation L (completed_draft q L kept) (walk q L [::]).
Proof. by apply: same_variation => // x f; exact: handed_block_same. Qed.

(* lossless for every target if and only if the draft defect is 0             *)
Let kept_size : dist (fun x => size x <= L)%N kept.
Proof. by apply: (dist_weaken _ kept_dist) => x []. Qed.

Theorem kept_token_iff : draft_law_right q L kept <->
  forall p, is_row p ->
    forall f, (x <- kept;; handed p (token p q cv) L x) f = walk p L.+1 [::] f.
Proof.
split=> [right p p_row f|right]; first exact: kept_token.
apply: (@same_converse _ _ q q_row L (token q q cv)) => //.
  by move=> x f; exact: handed_token_same.
exact: right.
Qed.

Theorem kept_block_iff : draft_law_right q L kept <->
  forall p, is_row p ->
    forall f, (x <- kept;; handed p (block p q cv) L x) f = walk p L.+1 [::] f.
Proof.
split=> [right p p_row f|right]; first exact: kept_block.
apply: (@same_converse _ _ q q_row L (block q q cv)) => //.
  by move=> x f; exact: handed_block_same.
exact: right.
Qed.
End KeptConverse.

(* ---- the defect is at most the draft defect, for every target              *)
Section KeptBound.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Variables (L : nat) (V : nat -> verifier F T) (kept : M F (seq T)).
Hypotheses (V_coherent : coherent p q V L) (kept_dist : dist (fun x => size x <= L)%N kept).
Hypothesis V_start : forall f, handed p V L [::] f = walk p L.+1 [::] f.
Hypothesis V_sane : forall x, size x = L -> sane (V L) x.

Lemma handed_dist x : size x = L -> dist (fun b => size b = L.+1) (handed p V L x).
Proof.
move=> xL; rewrite /handed xL; apply: (dist_bind2 (V_sane xL)) => -[s y] /= /size_prefix sx.
rewrite xL in sx; apply: (dist_bind (dist_walk _ _ p_row)) => u uL; apply: dist_ret.
by rewrite size_cat uL size_rcons addSn subnKC.
Qed.

Lemma completed_draft_dist : dist (fun y => size y = L) (completed_draft q L kept).
Proof.
apply: (dist_bind kept_dist) => x xL.
apply: (dist_bind (dist_walk _ _ q_row)) => z zL; apply: dist_ret.
by rewrite size_cat zL subnKC.
Qed.

Theorem kept_defect_le :
  total_variation L.+1 (x <- kept;; handed p V L x) (walk p L.+1 [::])
  <= total_variation L (completed_draft q L kept) (walk q L [::]).
Proof.
rewrite /total_variation ler_wpmul2r ?invr_ge0 ?ler0n //.
pose h (y b : seq T) := Pr (handed p V L y) b.
have h_ge0 (y : L.-tuple T) b : 0 <= h y b.
  by apply: (dist_pos (handed_dist (size_tuple y))) => z; exact: ler0n.
have out b : Pr (x <- kept;; handed p V L x) b - Pr (walk p L.+1 [::]) b =
    \sum_(y : L.-tuple T) (Pr (completed_draft q L kept) y - Pr (walk q L [::]) y) * h y b.
  rewrite [Pr (x <- kept;; _) b](kept_output V_coherent kept_dist).
  rewrite [Pr (walk p _ _) b](esym (V_start _)) (coherent_walk (n := L) _ V_coherent) //.
  rewrite [X in X - _](dist_tuple _ completed_draft_dist).
  rewrite [X in _ - X](dist_tuple _ (dist_walk L [::] q_row)) -sumrB.
  by apply: eq_bigr => y _; rewrite mulrBl.
pose d (y : L.-tuple T) := `|Pr (completed_draft q L kept) y - Pr (walk q L [::]) y|.
apply: (@le_trans _ _ (\sum_(b : L.+1.-tuple T) \sum_(y : L.-tuple T) d y * h y b)).
  apply: ler_sum => b _; rewrite out; apply: le_trans (ler_norm_sum _ _ _) _.
  by apply: ler_sum => y _; rewrite normrM (ger0_norm (h_ge0 y b)).
rewrite exchange_big; apply: ler_sum => y _; rewrite -big_distrr /=.
have -> : \sum_(b : L.+1.-tuple T) h y b = 1; last by rewrite mulr1.
have dy := handed_dist (size_tuple y); rewrite -(dist_one dy) (dist_tuple _ dy).
by apply: eq_bigr => b _; rewrite mulr1.
Qed.
End KeptBound.

Section KeptBoundPrinted.
Variables (F : realFieldType) (T : finType) (p q : model F T) (cv : convention F T).
Hypotheses (p_row : is_row p) (q_row : is_row q) (cv_proper : proper cv).
Variables (L : nat) (kept : M F (seq T)).
Hypothesis kept_dist : dist (fun x => size x <= L)%N kept.

Corollary kept_token_le :
  total_variation L.+1 (x <- kept;; handed p (token p q cv) L x) (walk p L.+1 [::])
  <= total_variation L (completed_draft q L kept) (walk q L [::]).
Proof.
apply: kept_defect_le => //; first exact: token_coherent.
  by move=> f; exact: handed_nil.
by move=> x _; exact: token_sane.
Qed.

Corollary kept_block_le :
  total_variation L.+1 (x <- kept;; handed p (block p q cv) L x) (walk p L.+1 [::])
  <= total_variation L (completed_draft q L kept) (walk q L [::]).
Proof.
apply: kept_defect_le => //; first exact: block_coherent.
  by move=> f; exact: handed_nil.
by move=> x _; exact: block_sane.
Qed.
End KeptBoundPrinted.
