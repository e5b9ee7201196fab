(* Several paths position by position: lossless for every K and L, with every *)
(* choice that is lossless at one position (spectr2023 Theorem 2).            *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless recursive.
From Spectheory Require Import spec.draft_selection spec.otm.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Notation selection := (draft_selection.selection numF (tokens _)).
Notation draft_selection := (draft_selection.draft_selection numF (tokens _)).
Notation naive_sampling := (draft_selection.naive_sampling numF (tokens _)).

Section Several.
Variables (F : realFieldType) (T : finType).

Lemma dist_several (A : Type) (P : A -> Prop) K (m : M F A) : dist P m ->
  dist (fun xs => size xs = K) (several K m).
Proof.
move=> dm; elim: K => [|K IH] /=; first exact: dist_ret.
apply: (dist_bind dm) => x _; apply: (dist_bind IH) => xs xsK.
by apply: dist_ret; rewrite /= xsK.
Qed.

Lemma severalS (A : Type) K (m : M F A) f :
  several K.+1 m f = m (fun x => several K m (fun xs => f (x :: xs))).
Proof. by []. Qed.

(* a constant has itself as mean                                              *)
Lemma dist_const (A : Type) (P : A -> Prop) (m : M F A) a : dist P m -> m (fun=> a) = a.
Proof.
move=> dm; rewrite -[RHS]mulr1 -(dist_one dm) -(dist_scale dm).
by apply: (dist_supp dm) => x _; rewrite mulr1.
Qed.

(* a distribution on tokens is the sum over its law                           *)
Lemma dist_fin (P : T -> Prop) (m : M F T) f : dist P m -> m f = \sum_t Pr m t * f t.
Proof.
move=> dm; have E t : Pr m t * f t = m (fun y => f t * (y == t)%:R).
  by rewrite (dist_scale dm) mulrC.
under eq_bigr do rewrite E.
rewrite -(dist_sum _ _ dm); apply: (dist_supp dm) => y _.
rewrite (bigD1 y) //= eqxx mulr1 big1 ?addr0 // => t ty.
by rewrite eq_sym (negbTE ty) mulr0.
Qed.

(* two independent draws in either order                                      *)
Lemma swap_walk (A : Type) (P : A -> Prop) (m : M F A) (r : model F T) n c f : dist P m ->
  walk r n c (fun z => m (fun a => f a z)) = m (fun a => walk r n c (f a)).
Proof.
move=> dm; rewrite walk_sum; symmetry.
transitivity (m (fun a => \sum_(x : n.-tuple T) path_prob r c x * f a x)).
  by apply: (dist_supp dm) => a _; rewrite walk_sum.
by rewrite (dist_sum _ _ dm); apply: eq_bigr => x _; rewrite (dist_scale dm).
Qed.

Lemma swap_fin (A : Type) (P : A -> Prop) (Q : T -> Prop) (m : M F A) (m' : M F T) f :
  dist P m -> dist Q m' -> m (fun a => m' (f a)) = m' (fun t => m (fun a => f a t)).
Proof.
move=> dm dm'; rewrite (dist_fin _ dm').
transitivity (m (fun a => \sum_t Pr m' t * f a t)).
  by apply: (dist_supp dm) => a _; rewrite (dist_fin _ dm').
by rewrite (dist_sum _ _ dm); apply: eq_bigr => x _; rewrite (dist_scale dm).
Qed.

(* K draws of one row are a walk of the model that has this row everywhere    *)
Lemma several_draw K (r : T -> F) c f : several K (draw r) f = walk (fun _ => r) K c f.
Proof.
elim: K c f => [//|K IH] c f; rewrite severalS walkS drawE.
by apply: eq_bigr => t _; rewrite (IH (rcons c t)).
Qed.
End Several.

Section Selection.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Variable choose : seq T -> seq T -> M F T.
Hypotheses (p_row : is_row p) (q_row : is_row q).
Hypothesis choose_dist : forall c xs, xs != [::] -> dist (fun=> True) (choose c xs).
(* lossless at one position, for every number of drafts                       *)
Hypothesis choose_lossless : forall c K f, (0 < K)%N ->
  (xs <- several K (draw (q c));; choose c xs) f = draw (p c) f.
Implicit Types (c xs : seq T) (zs : seq (seq T)) (y : T).

(* paths with the next tokens xs, each continued by n tokens                  *)
Fixpoint behind_tokens n c xs : M F (seq (seq T)) :=
  if xs is x :: xs' then
    z <- walk q n (rcons c x);; zs <- behind_tokens n c xs';; ret ((x :: z) :: zs)
  else ret [::].

Lemma behind_tokens_dist n c xs :
  dist (fun zs => next_tokens zs = xs) (behind_tokens n c xs).
Proof.
elim: xs => [|x xs IH] /=; first exact: dist_ret.
apply: (dist_bind (dist_walk _ _ q_row)) => z _; apply: (dist_bind IH) => zs zsx.
by apply: dist_ret; rewrite /next_tokens /= -/(next_tokens zs) zsx.
Qed.

Let draws_dist K c : dist (fun xs => size xs = K) (several K (draw (q c))).
Proof. exact: dist_several (dist_draw (q_row.1 c) (q_row.2 c)). Qed.

Lemma several_walk K n c f :
  several K (walk q n.+1 c) f = several K (draw (q c)) (fun xs => behind_tokens n c xs f).
Proof.
elim: K f => [//|K IH] f; rewrite !severalS walkS drawE.
apply: eq_bigr => t _; congr (_ * _); rewrite /= /bind /ret.
rewrite -(@swap_walk _ _ _ _ _ _ _ _ (fun xs z => behind_tokens n c xs (fun zs => f ((t :: z) :: zs)))
  (draws_dist K c)).
by apply: walk_ext => z _; rewrite IH.
Qed.

(* the paths behind y are independent again                                   *)
Lemma behind_tokens_agree n c xs y (f : seq (seq T) -> F) :
  behind_tokens n c xs (fun zs => f (agree y zs))
  = several (count_mem y xs) (walk q n (rcons c y)) f.
Proof.
elim: xs f => [//|x xs IH] f; rewrite /= /bind /ret /agree /=.
have [->|xy] := eqVneq x y.
  by rewrite eqxx /=; apply: walk_ext => z _; exact: (IH (fun zs => f (z :: zs))).
rewrite (_ : (Some x == Some y) = false) /=; last by apply/negbTE.
by rewrite (walk1 q_row.2) IH.
Qed.

Variable L : nat.

Lemma selection_main f n c K : (size c + n)%N = L -> (0 < K)%N ->
  several K (walk q n c) (fun zs => selection p choose n c zs
    (fun o => cont p (L - size o.1) (rcons o.1 o.2) f)) = cont p n.+1 c f.
Proof.
set k := fun o : seq T * T => _.
elim: n c K => [|n IH] c K cL K0.
  rewrite [LHS](dist_const _ (dist_several K (dist_walk 0 c q_row))).
  by rewrite /= /bind /ret /k /= drawE contS -cL addn0 subnn.
rewrite several_walk contS -drawE -(choose_lossless _ _ K0).
apply: (dist_supp (draws_dist K c)) => xs xsK.
have xs0 : xs != [::] by case: xs xsK K0 => [<-|].
transitivity (behind_tokens n c xs (fun zs => choose c xs (fun y =>
    (if nilp (agree y zs) then k (c, y) else selection p choose n (rcons c y) (agree y zs) k)))).
  apply: (dist_supp (behind_tokens_dist n c xs)) => zs zsx.
  rewrite /= zsx /bind; apply: (dist_supp (choose_dist c xs0)) => y _.
  by case: ifP.
rewrite (swap_fin _ (behind_tokens_dist n c xs) (choose_dist c xs0)).
apply: (dist_supp (choose_dist c xs0)) => y _.
rewrite (behind_tokens_agree n c xs y
  (fun zs => if nilp zs then k (c, y) else selection p choose n (rcons c y) zs k)).
case E: (count_mem y xs) => [|m].
  by rewrite /= /ret /k /= -cL addKn.
rewrite -(IH (rcons c y) m.+1) ?size_rcons ?addSnnS //.
Qed.

Theorem draft_selection_lossless K : (0 < K)%N ->
  lossless_call p L (draft_selection p q choose L K).
Proof. by move=> K0 f; rewrite -[RHS]/(cont p L.+1 [::] f) -(selection_main f (K := K)). Qed.
End Selection.

(* ---- naive sampling: lossless whatever the drafts are                      *)
Section Naive.
Variables (F : realFieldType) (T : finType) (p : model F T) (L : nat).
Hypothesis p_row : is_row p.

Lemma naive_main f n c zs : (size c + n <= L)%N ->
  selection p (fun c _ => draw (p c)) n c zs
    (fun o => cont p (L - size o.1) (rcons o.1 o.2) f) = cont p (L - size c).+1 c f.
Proof.
elim: n c zs => [|n IH] c zs cL; first by rewrite /= /bind /ret /= drawE contS.
have cL' : (size c < L)%N by apply: leq_trans cL; rewrite addnS ltnS leq_addr.
rewrite /= /bind drawE contS; apply: eq_bigr => y _; congr (_ * _).
case: ifP => _; first by rewrite /ret.
by rewrite IH size_rcons ?addSnnS // subnSK.
Qed.

Theorem naive_sampling_lossless (drafts : M F (seq (seq T))) : dist (fun=> True) drafts ->
  lossless_call p L (zs <- drafts;; naive_sampling p L zs).
Proof.
move=> dd f; rewrite -[RHS]/(cont p L.+1 [::] f) -[RHS](dist_const _ dd).
apply: (dist_supp dd) => zs _.
by have := naive_main f (c := [::]) zs (leqnn L); rewrite subn0.
Qed.
End Naive.

(* ---- OTM, given any plan whose first marginal is the law of the drafts     *)
Section OTM.
Variables (F : realFieldType) (T : finType) (p q : T -> F) (plan : seq T -> T -> F) (res0 : T -> F).
Notation P := (drafts_prob (field_numbers F) q).
Notation choose := (otm_choose (field_numbers F) (tokens T) q plan res0).
Notation otm := (otm (field_numbers F) (tokens T) q plan res0).
Variable K : nat.
Hypotheses (q_row : prob_row q) (res0_row : prob_row res0).
Hypotheses (plan_ge0 : forall x y, 0 <= plan x y)
  (plan_drafts : forall x, size x = K -> \sum_y plan x y = P x).

Lemma otm_rowE x y : otm_row (field_numbers F) q plan res0 x y =
  if P x == 0 then res0 y else plan x y / P x.
Proof. by []. Qed.

Lemma otm_plan x y : size x = K -> P x * otm_row (field_numbers F) q plan res0 x y = plan x y.
Proof.
move=> xK; rewrite otm_rowE; case: eqP => [P0|/eqP P0]; last by rewrite mulrCA divff // mulr1.
rewrite P0 mul0r; have s0 : \sum_y plan x y = 0 by rewrite plan_drafts.
by rewrite (psumr_eq0P (fun y _ => plan_ge0 x y) s0).
Qed.

Lemma otm_choose_dist x : size x = K -> dist (fun=> True) (choose x).
Proof.
move=> xK; apply: dist_draw => [y|].
  rewrite otm_rowE; case: eqP => _; first exact: res0_row.1.
  by rewrite divr_ge0 // -plan_drafts // sumr_ge0.
under eq_bigr do rewrite otm_rowE.
case: eqP => [_|/eqP P0]; first exact: res0_row.2.
by rewrite -big_distrl /= plan_drafts // divff.
Qed.

Lemma otm_law f : otm K f = \sum_y (\sum_(x : K.-tuple T) plan x y) * f y.
Proof.
rewrite -[LHS]/(several K (draw q) (fun x => choose x f)) (several_draw K q [::]) walk_sum.
transitivity (\sum_(x : K.-tuple T) \sum_y plan x y * f y).
  apply: eq_bigr => x _; rewrite /otm_choose drawE big_distrr; apply: eq_bigr => y _ /=.
  by rewrite mulrA -[path_prob _ _ _]/(P x) otm_plan // size_tuple.
by rewrite exchange_big; apply: eq_bigr => y _; rewrite -big_distrl.
Qed.

(* lossless if and only if the second marginal of the plan is the target      *)
Theorem otm_lossless : (forall f, otm K f = \sum_y p y * f y) <->
  forall y, \sum_(x : K.-tuple T) plan x y = p y.
Proof.
have one (r : T -> F) y : \sum_t r t * (t == y)%:R = r y.
  rewrite (bigD1 y) //= eqxx mulr1 big1 ?addr0 // => t /negbTE ->.
  by rewrite mulr0.
split=> [right y|target f]; last by rewrite otm_law; under eq_bigr do rewrite target.
by rewrite -(one p y) -right otm_law (one (fun y => \sum_(x : K.-tuple T) plan x y)).
Qed.
End OTM.
