(* Rules that choose how many drafted tokens are handed over and may look at   *)
(* all of them: 8.4 and 8.5.                                                  *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal calls adaptive selected kept.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rules.
Variables (F : realFieldType) (T : finType) (L : nat).
(* rule n x = P(N = n | the L drafted tokens are x): n of them are kept       *)
Variable rule : nat -> seq T -> F.
Hypothesis rule_ge0 : forall n x, 0 <= rule n x.
Hypothesis rule_one : forall x, size x = L -> \sum_(n < L.+1) rule n x = 1.
Implicit Types (p q : model F T) (a c x y z : seq T) (t : T) (g h : seq T -> F).

Definition kept_of x : M F (seq T) := fun g => \sum_(n < L.+1) rule n x * g (take n x).
Definition kept_by q : M F (seq T) := x <- walk q L [::];; kept_of x.

(* P(N = n | X_{1:n} = c), and the sum A of 8.4                                *)
Definition seen q n c : F := walk q (L - n) c (fun z => rule n (c ++ z)).
Definition density q x : F := \sum_(n < L.+1) seen q n (take n x).
Definition pseudo_stopping q : Prop :=
  forall x, size x = L -> path_prob q [::] x != 0 -> density q x = 1.
(* whether token n + 1 is kept depends on the first n tokens                  *)
Definition predictable : Prop := forall n x y, size x = L -> size y = L ->
  take n x = take n y -> \sum_(m < n.+1) rule m x = \sum_(m < n.+1) rule m y.

Section OneDraft.
Variable q : model F T.
Hypothesis q_row : is_row q.

(* a walk of L tokens, seen after n of them                                   *)
Lemma walk_cut n (h : seq T -> seq T -> F) : (n <= L)%N ->
  walk q L [::] (fun x => h (take n x) x)
  = walk q n [::] (fun a => walk q (L - n) a (fun z => h a (a ++ z))).
Proof.
move=> nL; rewrite -[in LHS](subnKC nL) walk_add; apply: walk_ext => a an.
by apply: walk_ext => z _; rewrite take_size_cat.
Qed.

Lemma walk_at n b h : size b = n ->
  walk q n [::] (fun x => h x * (x == b)%:R) = path_prob q [::] b * h b.
Proof.
move=> bn; transitivity (walk q n [::] (fun x => h b * (x == b)%:R)).
  by apply: walk_ext => x _; case: eqP => [->|_]; rewrite ?mulr0.
rewrite walkZ mulrC -[X in X * _ = _]/(Pr (walk q n [::]) b).
by rewrite (walk_law q_row) bn eqxx mul1r.
Qed.

Lemma kept_by_dist :
  dist (fun x => (size x <= L)%N /\ path_prob q [::] x != 0) (kept_by q).
Proof.
apply: (dist_bind (dist_drafted L [::] q_row)) => x [xL x0]; split=> [f g fg|f g|k f|f f0|]; rewrite /kept_of.
- apply: eq_bigr => n _; congr (_ * _); apply: fg; split; first by rewrite size_takel ?xL leq_ord.
  by apply: contraNneq x0 => n0; rewrite -(cat_take_drop n x) path_prob_cat n0 mul0r.
- by rewrite -big_split; apply: eq_bigr => n _; rewrite mulrDr.
- by rewrite big_distrr; apply: eq_bigr => n _; rewrite mulrCA.
- by apply: sumr_ge0 => n _; rewrite mulr_ge0.
- by under eq_bigr do rewrite mulr1; exact: rule_one.
Qed.

(* the law of the completed draft has the density A with respect to q         *)
Lemma kept_by_law g :
  completed_draft q L (kept_by q) g = walk q L [::] (fun x => density q x * g x).
Proof.
have dw := dist_walk L [::] q_row; pose W n a := walk q (L - n) a (fun z => g (a ++ z)).
transitivity (\sum_(n < L.+1) walk q L [::] (fun x => W n (take n x) * rule n x)).
  rewrite -(dist_sum _ _ dw); apply: walk_ext => x xL; apply: eq_bigr => n _.
  by rewrite mulrC /W size_takel // xL leq_ord.
under [RHS]walk_ext do rewrite /density big_distrl /=.
rewrite (dist_sum _ _ dw); apply: eq_bigr => n _; have nL := leq_ord n.
rewrite (walk_cut (fun a x => W n a * rule n x) nL) (walk_cut (fun a x => seen q n a * g x) nL).
by apply: walk_ext => a _; rewrite !walkZ mulrC.
Qed.

(* 8.4: the draft defect is E|A - 1| / 2                                       *)
Theorem length_rule_defect :
  total_variation L (completed_draft q L (kept_by q)) (walk q L [::])
  = walk q L [::] (fun x => `|density q x - 1|) / 2%:R.
Proof.
rewrite /total_variation; congr (_ / _); rewrite walk_sum; apply: eq_bigr => b _.
have bL := size_tuple b; rewrite /Pr kept_by_law walk_at // -[walk _ _ _ _]/(Pr (walk q L [::]) b).
rewrite walk_law // bL eqxx mul1r -{2}[path_prob _ _ _]mulr1 -mulrBr normrM.
by rewrite ger0_norm // path_prob_ge0.
Qed.

Theorem pseudo_stopping_right : draft_law_right q L (kept_by q) <-> pseudo_stopping q.
Proof.
split=> [right x xL x0|one g].
  have := right (fun y => (y == x)%:R); rewrite kept_by_law walk_at //.
  rewrite -[walk _ _ _ _]/(Pr (walk q L [::]) x) walk_law // xL eqxx mul1r.
  by rewrite -[X in _ = X]mulr1 => /(mulfI x0).
rewrite kept_by_law; apply: (dist_supp (dist_drafted L [::] q_row)) => x [xL x0].
by rewrite one // mul1r.
Qed.

Section Printed.
Variable cv : convention F T.
Hypothesis cv_proper : proper cv.

(* 8.4: lossless for every target if and only if the rule is pseudo-stopping  *)
Theorem length_rule_token_iff : pseudo_stopping q <-> forall p, is_row p ->
  forall f, (x <- kept_by q;; handed p (token p q cv) L x) f = walk p L.+1 [::] f.
Proof.
by rewrite -pseudo_stopping_right; exact: (kept_token_iff cv q_row kept_by_dist).
Qed.

Theorem length_rule_block_iff : pseudo_stopping q <-> forall p, is_row p ->
  forall f, (x <- kept_by q;; handed p (block p q cv) L x) f = walk p L.+1 [::] f.
Proof.
by rewrite -pseudo_stopping_right; exact: (kept_block_iff q_row cv_proper kept_by_dist).
Qed.
End Printed.

(* a predictable rule gives the same probability wherever n tokens agree      *)
Lemma predictable_rule n x y : predictable -> size x = L -> size y = L ->
  take n x = take n y -> rule n x = rule n y.
Proof.
move=> pred xL yL xy; have := pred _ _ _ xL yL xy; rewrite !big_ord_recr /=.
case: n xy => [|n] xy; first by rewrite !big_ord0 !add0r.
have -> : \sum_(m < n.+1) rule m x = \sum_(m < n.+1) rule m y.
  by apply: pred => //; rewrite -(take_take (leqnSn n) x) xy take_take.
exact: addrI.
Qed.

Theorem predictable_pseudo_stopping : predictable -> pseudo_stopping q.
Proof.
move=> pred x xL _; rewrite -(rule_one xL); apply: eq_bigr => n _.
have nL := leq_ord n.
have tx : size (take n x) = n by rewrite size_takel ?xL.
rewrite -[RHS](walk1 q_row.2 (L - n) (take n x)); apply: walk_ext => z zn.
by apply: predictable_rule; rewrite ?size_cat ?tx ?zn ?subnKC // take_size_cat.
Qed.

(* 8.4: if the draft is deterministic, every rule is pseudo-stopping          *)
Lemma walk_one_hot c x h : (forall c t, q c t = 0 \/ q c t = 1) -> path_prob q c x != 0 ->
  walk q (size x) c h = h x.
Proof.
move=> hot; elim: x c h => [//|t x IH] c h; rewrite path_probE mulf_eq0 negb_or => /andP[qt x0].
have q1 : q c t = 1 by case: (hot c t) => // q0; rewrite q0 eqxx in qt.
have rest : \sum_(s | s != t) q c s = 0.
  by have := q_row.2 c; rewrite (bigD1 t) //= q1 -[X in _ = X -> _]addr0 => /addrI.
rewrite walkS (bigD1 t) //= q1 mul1r IH // big1 ?addr0 // => s st.
by rewrite (psumr_eq0P (fun s _ => q_row.1 c s) rest) ?mul0r.
Qed.

Theorem deterministic_pseudo_stopping :
  (forall c t, q c t = 0 \/ q c t = 1) -> pseudo_stopping q.
Proof.
move=> hot x xL x0; rewrite -(rule_one xL); apply: eq_bigr => n _.
move: x0; rewrite -{1}(cat_take_drop n x) path_prob_cat mulf_eq0 negb_or => /andP[_ x0].
have xn : size (drop n x) = (L - n)%N by rewrite size_drop xL.
by rewrite /seen -xn walk_one_hot // cat_take_drop.
Qed.
End OneDraft.

(* ---- 8.5: rules that read the tokens only                                   *)
(* two paths that go apart after k tokens, each drafted with probability 1/2  *)
Lemma two_paths x y k : size x = L -> size y = L -> (k < L)%N ->
  (forall n, (n <= L)%N -> (take n y == take n x) = (n <= k)%N) ->
  (forall q, is_row q -> pseudo_stopping q) ->
  \sum_(n < k.+1) rule n x = \sum_(n < k.+1) rule n y.
Proof.
move=> xL yL kL apart all; case: x xL apart => [|t0 x'] xL apart; first by rewrite -xL in kL.
move: xL apart; set x := t0 :: x' => xL apart.
pose select : M F (seq T) := fun g => (g x + g y) / 2%:R.
have two : 2%:R != 0 :> F by rewrite pnatr_eq0.
have sd : dist (fun z => size z = L) select.
  split=> [f g fg|f g|m f|f f0|]; rewrite /select; last by field.
  - by rewrite !fg.
  - by field.
  - by field.
  - by rewrite divr_ge0 ?ler0n // addr_ge0 ?f0.
have start : is_row (fun (_ : seq T) t => (t == t0)%:R : F).
  split=> [c t|c]; first exact: ler0n.
  by rewrite (bigD1 t0) //= eqxx big1 ?addr0 // => t /negbTE ->.
have [q q_row law] := law_rows sd start.
have Q n : (n <= L)%N -> path_prob q [::] (take n x) = (1 + (n <= k)%N%:R) / 2%:R.
  move=> nL; rewrite -(walk_prefix q_row (n := L)) ?size_takel ?xL // -law /select.
  by rewrite !prefixE !size_takel ?xL // eqxx apart.
have S n : (n <= L)%N -> seen q n (take n x) = rule n x + (n <= k)%N%:R * (rule n y - rule n x) / 2%:R.
  move=> nL; have tn : size (take n x) = n by rewrite size_takel ?xL.
  have : path_prob q [::] (take n x) * seen q n (take n x) =
      select (fun z => rule n z * (take n z == take n x)%:R).
    rewrite law (walk_cut q (fun a z => rule n z * (a == take n x)%:R) nL) -(@walk_at _ q_row n _ _ tn).
    apply: walk_ext => a _; rewrite mulrC -walkZ; apply: walk_ext => z _; exact: mulrC.
  rewrite Q // /select eqxx apart //; case: (n <= k)%N => /= E.
    transitivity ((1 + 1) / 2%:R * seen q n (take n x)); first by field.
    by rewrite E; field.
  transitivity (2%:R * ((1 + 0) / 2%:R * seen q n (take n x))); first by field.
  by rewrite E; field.
have := all q q_row x xL; rewrite -[x in path_prob _ _ x](take_size x) xL Q // => /(_ _) D.
have {D} : density q x = 1.
  by apply: D; rewrite leqNgt kL /= addr0 mul1r invr_neq0.
rewrite /density; under eq_bigr => n _ do rewrite S ?(leq_ord n) //.
rewrite big_split /= rule_one // => /eqP; rewrite -subr_eq0 addrC addKr -big_distrl /=.
rewrite mulf_eq0 invr_eq0 (negbTE two) orbF.
rewrite (big_ord_widen L.+1 (rule^~ x)) ?(big_ord_widen L.+1 (rule^~ y)) ?ltnS ?(ltnW kL) //.
have E : \sum_(n < L.+1) (n <= k)%N%:R * (rule n y - rule n x) =
    \sum_(n < L.+1 | (n < k.+1)%N) rule n y - \sum_(n < L.+1 | (n < k.+1)%N) rule n x.
  rewrite -sumrB [RHS]big_mkcond; apply: eq_bigr => n _; rewrite ltnS.
  by case: leqP; rewrite ?mul1r ?mul0r.
by rewrite E subr_eq0 => /eqP.
Qed.

(* lossless with every draft, for every target: predictable                   *)
Theorem tokens_only_iff : (forall q, is_row q -> pseudo_stopping q) <-> predictable.
Proof.
split=> [all|pred q q_row]; last exact: predictable_pseudo_stopping.
have apart x y t0 n : size x = L -> size y = L -> (n < L)%N -> take n x = take n y ->
    nth t0 x n != nth t0 y n -> \sum_(m < n.+1) rule m x = \sum_(m < n.+1) rule m y.
  move=> xL yL nL xy ne; apply: two_paths => // m mL; case: leqP => [mn|nm].
    by rewrite -(take_take mn y) -xy take_take // eqxx.
  apply/negbTE; apply: contra ne => /eqP E.
  by rewrite -(nth_take t0 nm x) -E nth_take.
move=> n x y xL yL xy; have [Ln|nL] := leqP L n.
  by move: xy; rewrite !take_oversize ?xL ?yL // => ->.
case: x xL xy => [|t0 x'] xL xy; first by rewrite -xL in nL.
move: xL xy; set x := t0 :: x' => xL xy.
case: (pickP (fun t => t != nth t0 x n)) => [t tx|none]; last first.
  suff -> : x = y by [].
  have same t : t = nth t0 x n by apply/eqP; have := none t; rewrite /= => /negbFE.
  by apply: (@eq_from_nth _ t0) => [|i _]; rewrite ?xL ?yL // [LHS]same [RHS]same.
pose z := take n x ++ nseq (L - n) t.
have nx : size (take n x) = n by rewrite size_takel ?xL // ltnW.
have zL : size z = L by rewrite size_cat nx size_nseq subnKC // ltnW.
have zx : take n z = take n x by rewrite take_size_cat.
have zn : nth t0 z n = t by rewrite nth_cat nx ltnn subnn nth_nseq subn_gt0 nL.
have [yx|yx] := eqVneq (nth t0 y n) (nth t0 x n); last by apply: (apart x y t0); rewrite // eq_sym.
transitivity (\sum_(m < n.+1) rule m z).
  by apply: (apart x z t0) => //; rewrite zn eq_sym.
by apply: (apart z y t0) => //; rewrite ?zx // zn yx.
Qed.
End Rules.

(* ---- 8.5 for one drafted token, kept with probability keep t               *)
Section OneToken.
Variables (F : realFieldType) (T : finType) (q : model F T) (rule : nat -> seq T -> F).
Hypotheses (q_row : is_row q) (rule_ge0 : forall n x, 0 <= rule n x).
Hypothesis rule_one : forall x, size x = 1%N -> \sum_(n < 2) rule n x = 1.
Definition keep t : F := rule 1 [:: t].
Definition mean_keep : F := \sum_t q [::] t * keep t.

Lemma one_token_density t : density 1 rule q [:: t] - 1 = keep t - mean_keep.
Proof.
have one s : rule 0 [:: s] + keep s = 1.
  by have := rule_one (erefl (size [:: s])); rewrite !big_ord_recl big_ord0 addr0.
have -> : density 1 rule q [:: t] = walk q 1 [::] (rule 0) + keep t.
  by rewrite /density !big_ord_recl big_ord0 addr0.
rewrite walkS (eq_bigr (fun s => q [::] s - q [::] s * keep s)); last first.
  by move=> s _; rewrite walk0E -[X in _ = X - _]mulr1 -mulrBr -(one s) addrK.
by rewrite sumrB q_row.2 -/mean_keep; ring.
Qed.

Theorem one_token_defect :
  total_variation 1 (completed_draft q 1 (kept_by 1 rule q)) (walk q 1 [::])
  = (\sum_t q [::] t * `|keep t - mean_keep|) / 2%:R.
Proof.
rewrite length_rule_defect // walkS; congr (_ / _); apply: eq_bigr => t _.
by rewrite walk0E one_token_density.
Qed.

Theorem one_token_defect_le :
  total_variation 1 (completed_draft q 1 (kept_by 1 rule q)) (walk q 1 [::]) <= 1 / 4%:R.
Proof.
rewrite one_token_defect; set m := mean_keep.
have k0 t : 0 <= keep t by exact: rule_ge0.
have k1 t : keep t <= 1.
  have := rule_one (erefl (size [:: t])); rewrite !big_ord_recl big_ord0 addr0 => <-.
  by rewrite ler_addr rule_ge0.
have m0 : 0 <= m by apply: sumr_ge0 => t _; rewrite mulr_ge0 ?q_row.1.
have m1 : m <= 1.
  by rewrite -(q_row.2 [::]); apply: ler_sum => t _; rewrite ler_pimulr ?q_row.1.
have le t : `|keep t - m| <= keep t * (1 - m) + (1 - keep t) * m.
  rewrite (_ : keep t - m = keep t * (1 - m) - (1 - keep t) * m); last by ring.
  apply: le_trans (ler_norm_sub _ _) _.
  by rewrite !ger0_norm // mulr_ge0 ?subr_ge0.
apply: (@le_trans _ _ (m * (1 - m))).
  rewrite ler_pdivr_mulr ?ltr0n //; apply: le_trans (ler_sum _ (fun t _ => ler_wpmul2l (q_row.1 _ t) (le t))) _.
  have E t : q [::] t * (keep t * (1 - m) + (1 - keep t) * m) =
      (1 - m) * (q [::] t * keep t) + m * (q [::] t - q [::] t * keep t) by ring.
  under eq_bigr do rewrite E.
  rewrite big_split /= -!big_distrr /= sumrB q_row.2 -/mean_keep -/m.
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
rewrite -subr_ge0 (_ : _ - _ = (m - 1 / 2%:R) ^+ 2); last by field.
exact: sqr_ge0.
Qed.
End OneToken.
