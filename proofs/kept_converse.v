(* The converse of the kept-draft criterion at one positive target: 8.1 (iii).  *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal calls adaptive kept length_rules.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Converse.
Variables (F : realFieldType) (T : finType) (p q : model F T) (cv : convention F T) (L : nat).
Hypotheses (p_row : is_row p) (q_row : is_row q).
(* the target can draw every token that the draft can draw                    *)
Hypothesis positive : forall c t, q c t != 0 -> 0 < p c t.
Implicit Types (c s x : seq T) (t z : T) (f u : seq T -> F) (w : F).

(* a signed measure of paths behind c, on paths that can be drafted           *)
Definition drafted c u : Prop := forall x, path_prob q c x = 0 -> u x = 0.

Lemma drafted_cons c u z : q c z != 0 -> drafted c u -> drafted (rcons c z) (fun x => u (z :: x)).
Proof. by move=> qz du x x0; apply: du; rewrite path_probE x0 mulr0. Qed.

Lemma ratio_gt0 c z : q c z != 0 -> 0 < ratio p q cv c z.
Proof.
by move=> qz; rewrite ratioE (negbTE qz) divr_gt0 ?positive // lt_def qz q_row.1.
Qed.

Lemma walk_ones n c (g : seq T -> F) : walk (fun _ _ => 1) n c g = \sum_(x : n.-tuple T) g x.
Proof.
rewrite walk_sum; apply: eq_bigr => x _; rewrite (_ : path_prob _ _ _ = 1) ?mul1r //.
by elim: (val x) c => [|t y IH] c //=; rewrite IH mulr1.
Qed.

Lemma sum_cons n (g : seq T -> F) :
  \sum_(x : n.+1.-tuple T) g x = \sum_z \sum_(x : n.-tuple T) g (z :: x).
Proof.
rewrite -(walk_ones n.+1 [::]) walkS; apply: eq_bigr => z _.
by rewrite mul1r walk_ones.
Qed.

(* what f says of the outputs that start with c z                             *)
Definition only c z f : seq T -> F := fun s => (prefix (rcons c z) s)%:R * f s.
Lemma only_on c z f s : prefix (rcons c z) s -> only c z f s = f s.
Proof. by rewrite /only => ->; rewrite mul1r. Qed.
Lemma only_off c z z' f s : z' != z -> prefix (rcons c z') s -> only c z f s = 0.
Proof.
rewrite /only => zz' /prefixP[s' ->]; case: (boolP (prefix _ _)) => [|_]; last by rewrite mul0r.
rewrite prefixE size_rcons -(size_rcons c z') take_size_cat // eqseq_rcons eqxx /= => E.
by rewrite E in zz'.
Qed.

Lemma cont_only n c z z' f : cont p n (rcons c z') (only c z f)
  = (z' == z)%:R * cont p n (rcons c z) f.
Proof.
have [->|ne] := eqVneq z' z.
  by rewrite mul1r; apply: walk_ext => x _; rewrite only_on // prefix_prefix.
rewrite mul0r -(walk0 p n (rcons c z')); apply: walk_ext => x _.
by rewrite (only_off _ ne) // prefix_prefix.
Qed.

(* the mean of f if the call stops at c and corrects with the weight w        *)
Definition stop c w f : F := value p q cv L f c w.

Lemma stop_only c w z f n : (size c + n.+1)%N = L ->
  stop c w (only c z f) = residual p q cv c w z * cont p n.+1 (rcons c z) f.
Proof.
move=> cL; rewrite /stop /value correctionE ltn_eqF; last by rewrite -cL addnS ltnS leq_addr.
rewrite -cL addKn drawE (bigD1 z) //= cont_only eqxx mul1r big1 ?addr0 // => z' /negbTE zz'.
by rewrite cont_only zz' mul0r mulr0.
Qed.

(* A call gives f the mean G z x f if it accepts z after c, where z and x were *)
(* drafted, and stops at c with probability b z x, with the row r.            *)
Section Step.
Variables (n : nat) (c : seq T) (u : seq T -> F) (G : T -> seq T -> (seq T -> F) -> F).
Variables (b : T -> seq T -> F) (r : T -> F) (low : pred T).
Notation stopped := (\sum_z \sum_(x : n.-tuple T) u (z :: x) * b z x).
Hypothesis all_f : forall z f, \sum_z' \sum_(x : n.-tuple T)
  u (z' :: x) * ((z' == z)%:R * G z x f + b z' x * (r z * cont p n.+1 (rcons c z) f)) = 0.
Hypothesis low_stop : forall z, low z -> stopped * r z = 0.
Hypothesis high_stop : forall z (x : n.-tuple T), ~~ low z -> u (z :: x) * b z x = 0.
Hypothesis IH : forall z, (forall f, \sum_(x : n.-tuple T) u (z :: x) * G z x f = 0) ->
  forall x, size x = n -> u (z :: x) = 0.

Lemma one_step x : size x = n.+1 -> u x = 0.
Proof.
have split z f : \sum_(x : n.-tuple T) u (z :: x) * G z x f
    + stopped * r z * cont p n.+1 (rcons c z) f = 0.
  rewrite -[RHS](all_f z f) -[stopped * _ * _]mulrA big_distrl /=.
  rewrite [RHS](bigD1 z) //= [in LHS](bigD1 z) //= addrA; congr (_ + _).
    rewrite big_distrl -big_split; apply: eq_bigr => y _ /=.
    by rewrite eqxx mul1r; ring.
  apply: eq_bigr => z' /negbTE zz'; rewrite big_distrl; apply: eq_bigr => y _ /=.
  by rewrite zz' /= mul0r add0r -mulrA.
case: x => [//|z x] [xn].
have at_ y : stopped * r y = 0 -> forall x, size x = n -> u (y :: x) = 0.
  by move=> k0; apply: IH => f; rewrite -[RHS](split y f) k0 mul0r addr0.
suff k0 : stopped = 0 by apply: at_ => //; rewrite k0 mul0r.
rewrite big1 // => y _; rewrite big1 // => x' _; have [ly|hy] := boolP (low y).
  by rewrite (at_ y (low_stop ly)) ?mul0r // size_tuple.
exact: high_stop.
Qed.
End Step.

Lemma stop_ext c w f g : (forall s, prefix c s -> f s = g s) -> stop c w f = stop c w g.
Proof.
move=> fg; rewrite /stop /value correctionE; case: ifP => _; rewrite !drawE;
  apply: eq_bigr => y _; congr (_ * _); apply: walk_ext => v _; apply: fg;
  by rewrite -cats1 -catA prefix_prefix.
Qed.

Lemma stop_zero c w : stop c w (fun=> 0) = 0.
Proof.
by rewrite /stop /value correctionE; case: ifP => _; rewrite drawE big1 // => y _;
  rewrite /cont walk0 mulr0.
Qed.

(* where no gain is left the rows are equal                                   *)
Lemma no_gain c t : total_gain p q c 1 = 0 -> p c t = q c t.
Proof.
move=> S0; have le y : p c y <= q c y.
  have G0 := S0; rewrite total_gainE in G0.
  have /eqP : gain p q c 1 y = 0 by apply: (psumr_eq0P _ G0) => // y' _; exact: gain_ge0.
  by rewrite gainE mul1r eq_maxr subr_le0.
have d0 : \sum_y (q c y - p c y) = 0 by rewrite sumrB p_row.2 q_row.2 subrr.
have d1 y : true -> 0 <= q c y - p c y by rewrite subr_ge0.
by apply/eqP; rewrite eq_sym -subr_eq0 (psumr_eq0P d1 d0).
Qed.

(* the weight after a token of the two kinds                                  *)
Lemma weight_high c w z : q c z != 0 -> q c z < w * p c z -> next_weight p q cv c w z = 1.
Proof.
move=> qz lt; have q0 : 0 < q c z by rewrite lt_def qz q_row.1.
by rewrite next_weightE ratioE (negbTE qz) mulrA min_r // ler_pdivl_mulr // mul1r ltW.
Qed.

Lemma weight_same c z : q c z != 0 -> p c z = q c z -> next_weight p q cv c 1 z = 1.
Proof. by move=> qz same; rewrite next_weightE ratioE (negbTE qz) same divff // mul1r minxx. Qed.

Lemma weight_gt0 c w z : 0 < w -> q c z != 0 -> 0 < next_weight p q cv c w z.
Proof. by move=> w0 qz; rewrite next_weightE lt_minr ltr01 andbT mulr_gt0 // ratio_gt0. Qed.

Lemma residual_low c w z : w * p c z <= q c z -> total_gain p q c w != 0 ->
  residual p q cv c w z = 0.
Proof.
by move=> low /negbTE S0; rewrite residualE S0 gainE max_r ?mul0r // subr_le0.
Qed.

(* ---- token verification                                                    *)
Definition token_from c x f : F := token_loop p q cv c x (fun s => stop s 1 f).

Lemma token_fromE c t x f : token_from c (t :: x) f =
  next_weight p q cv c 1 t * token_from (rcons c t) x f
  + (1 - next_weight p q cv c 1 t) * stop c 1 f.
Proof. by rewrite next_weightE mul1r. Qed.

Lemma token_from_ext c x f g : (forall s, prefix c s -> f s = g s) ->
  token_from c x f = token_from c x g.
Proof.
elim: x c => [|t x IH] c fg; first exact: stop_ext.
rewrite !token_fromE (stop_ext 1 fg) (IH (rcons c t)) // => s cs.
by apply: fg; apply: prefix_trans cs; exact: prefix_rcons.
Qed.

Lemma token_from_only c x z z' f :
  token_from (rcons c z') x (only c z f) = (z' == z)%:R * token_from (rcons c z) x f.
Proof.
have [->|ne] := eqVneq z' z; first by rewrite mul1r; apply: token_from_ext; exact: only_on.
rewrite mul0r; transitivity (token_from (rcons c z') x (fun=> 0)).
  by apply: token_from_ext => s; exact: only_off.
elim: x (rcons c z') => [|t x IH] d; first exact: stop_zero.
by rewrite token_fromE IH stop_zero !mulr0 addr0.
Qed.

(* different drafts have different outputs                                    *)
Lemma token_injective n c u : (size c + n)%N = L -> drafted c u ->
  (forall f, \sum_(x : n.-tuple T) u x * token_from c x f = 0) ->
  forall x, size x = n -> u x = 0.
Proof.
elim: n c u => [|n IH] c u cL du all_f.
  move=> x /size0nil ->; have cL0 : size c = L by rewrite -cL addn0.
  have := all_f (fun=> 1); rewrite -(walk_ones 0 [::] (fun x => u x * token_from c x (fun=> 1))) walk0E.
  rewrite -[token_from _ _ _]/(value p q cv L (fun=> 1) c 1) value_end //.
  by rewrite /cont (walk1 p_row.2) mulr1.
apply: (@one_step n c u (fun z x f => next_weight p q cv c 1 z * token_from (rcons c z) x f)
  (fun z _ => 1 - next_weight p q cv c 1 z) (residual p q cv c 1) (fun z => 1 * p c z <= q c z)).
- move=> z f; rewrite -[RHS](all_f (only c z f)).
  rewrite (sum_cons n (fun x => u x * token_from c x (only c z f))); apply: eq_bigr => z' _.
  apply: eq_bigr => x _; rewrite token_fromE token_from_only (stop_only _ _ _ cL).
  by have [->|_] := eqVneq z' z; rewrite ?mulr1n ?mulr0n; ring.
- move=> z low; have [S0|S0] := eqVneq (total_gain p q c 1) 0; last first.
    by rewrite residual_low // mulr0.
  rewrite big1 ?mul0r // => y _; rewrite big1 // => x _.
  have [qy|qy] := eqVneq (q c y) 0; first by rewrite du ?mul0r // path_probE qy mul0r.
  by rewrite weight_same // ?subrr ?mulr0 // no_gain.
- move=> z x; rewrite -ltNge => high.
  have [qz|qz] := eqVneq (q c z) 0; first by rewrite du ?mul0r // path_probE qz mul0r.
  by rewrite weight_high // subrr mulr0.
- move=> z zf x xn; have [qz|qz] := eqVneq (q c z) 0; first by rewrite du // path_probE qz mul0r.
  have w0 : next_weight p q cv c 1 z != 0 by rewrite gt_eqF // weight_gt0 // ltr01.
  apply: (IH (rcons c z) (fun x => u (z :: x))) => //.
  + by rewrite size_rcons addSnnS.
  + exact: drafted_cons.
  move=> f; apply: (mulfI w0); rewrite mulr0 -[RHS](zf f) big_distrr.
  by apply: eq_bigr => y _; exact: mulrCA.
Qed.

(* ---- block verification                                                    *)
Hypothesis cv_proper : proper cv.

Lemma stop_one c w : stop c w (fun=> 1) = 1.
Proof.
have dc := dist_correction q p_row cv_proper L c w.
rewrite -[RHS](dist_one dc); apply: (dist_supp dc) => y _.
exact: walk1 p_row.2 _ _ _.
Qed.

(* the mean of f on the calls that stop at c or later, where c has the weight *)
(* w and x was drafted behind it                                              *)
Fixpoint stays c w x f : F :=
  if x is t :: x' then
    let A := stays (rcons c t) (next_weight p q cv c w t) x' in
    A f + (1 - A (fun=> 1)) * (accept_prob p q cv c w * stop c w f)
  else w * stop c w f.

Lemma step_stays c w x f best : @step F T p q cv (fun b => stop b.1 b.2 f) c x w best
  = stays c w x f + (1 - stays c w x (fun=> 1)) * stop best.1 best.2 f.
Proof.
elim: x c w best => [|t x IH] c w best; first by rewrite /step /= stop_one mulr1.
rewrite {1}/step !block_loop_cons !IH /= stop_one; ring.
Qed.

Lemma stays_ext c w x f g : (forall s, prefix c s -> f s = g s) ->
  stays c w x f = stays c w x g.
Proof.
elim: x c w => [|t x IH] c w fg /=; rewrite (stop_ext w fg) //.
rewrite (IH (rcons c t)) // => s cs.
by apply: fg; apply: prefix_trans cs; exact: prefix_rcons.
Qed.

Lemma stays_only c w x z z' f :
  stays (rcons c z') w x (only c z f) = (z' == z)%:R * stays (rcons c z') w x f.
Proof.
have [->|ne] := eqVneq z' z; first by rewrite mul1r; apply: stays_ext; exact: only_on.
rewrite mul0r; transitivity (stays (rcons c z') w x (fun=> 0)).
  by apply: stays_ext => s; exact: only_off.
by elim: x (rcons c z') w => [|t x IH] d w /=; rewrite ?IH stop_zero ?mulr0 ?addr0.
Qed.

(* with weight 1 the call stops here or later                                 *)
Lemma stays_one c x : path_prob q c x != 0 -> stays c 1 x (fun=> 1) = 1.
Proof.
elim: x c => [|t x IH] c; first by rewrite /= stop_one mulr1.
rewrite path_probE mulf_eq0 negb_or => /andP[qt x0] /=; rewrite stop_one mulr1.
have [S0|S0] := eqVneq (total_gain p q c 1) 0.
  by rewrite weight_same // ?no_gain // IH // subrr mul0r addr0.
by rewrite accept_probE addrK (negbTE S0) divff // mulr1 addrC subrK.
Qed.

Lemma block_injective n c w u : (size c + n)%N = L -> 0 < w <= 1 -> drafted c u ->
  (forall f, \sum_(x : n.-tuple T) u x * stays c w x f = 0) ->
  forall x, size x = n -> u x = 0.
Proof.
elim: n c w u => [|n IH] c w u cL /andP[w0 w1] du all_f.
  move=> x /size0nil ->; have := all_f (fun=> 1).
  rewrite -(walk_ones 0 [::] (fun x => u x * stays c w x (fun=> 1))) walk0E /= stop_one mulr1.
  by move=> /eqP; rewrite mulf_eq0 (gt_eqF w0) orbF => /eqP.
have gone y (x : n.-tuple T) : next_weight p q cv c w y = 1 ->
    u (y :: x) * (1 - stays (rcons c y) (next_weight p q cv c w y) x (fun=> 1)) = 0.
  move=> ->; have [x0|x0] := eqVneq (path_prob q (rcons c y) x) 0.
    by rewrite du ?mul0r // path_probE x0 mulr0.
  by rewrite stays_one // subrr mulr0.
have undrafted y x : q c y = 0 -> u (y :: x) = 0.
  by move=> qy; rewrite du // path_probE qy mul0r.
apply: (@one_step n c u (fun z x f => stays (rcons c z) (next_weight p q cv c w z) x f)
  (fun z x => 1 - stays (rcons c z) (next_weight p q cv c w z) x (fun=> 1))
  (fun z => accept_prob p q cv c w * residual p q cv c w z) (fun z => w * p c z <= q c z)).
- move=> z f; rewrite -[RHS](all_f (only c z f)).
  rewrite (sum_cons n (fun x => u x * stays c w x (only c z f))); apply: eq_bigr => z' _.
  apply: eq_bigr => x _ /=; rewrite stays_only (stop_only _ _ _ cL).
  by have [->|_] := eqVneq z' z; rewrite ?mulr1n ?mulr0n; ring.
- move=> z low; have [S0|S0] := eqVneq (total_gain p q c w) 0; last first.
    by rewrite residual_low // !mulr0.
  have [w1'|w1'] := eqVneq w 1.
    rewrite big1 ?mul0r // => y _; rewrite big1 // => x _.
    have [qy|qy] := eqVneq (q c y) 0; first by rewrite undrafted ?mul0r.
    by apply: gone; move: S0; rewrite w1' => S0; rewrite weight_same // no_gain.
  rewrite accept_probE S0 add0r subr_eq0 eq_sym (negbTE w1') mul0r mul0r mulr0 //.
- move=> z x; rewrite -ltNge => high.
  have [qz|qz] := eqVneq (q c z) 0; first by rewrite undrafted ?mul0r.
  by apply: gone; exact: weight_high.
- move=> z zf x xn; have [qz|qz] := eqVneq (q c z) 0; first exact: undrafted.
  apply: (IH (rcons c z) (next_weight p q cv c w z) (fun x => u (z :: x))) => //.
  + by rewrite size_rcons addSnnS.
  + by rewrite weight_gt0 // next_weight_le1.
  + exact: drafted_cons.
Qed.

Lemma block_stays x f : size x = L -> path_prob q [::] x != 0 ->
  handed p (block p q cv) L x f = stays [::] 1 x f.
Proof.
move=> xL x0; rewrite /handed xL; case: x xL x0 => [|t x] xL x0; first by rewrite /= mul1r.
pose A := stays [:: t] (next_weight p q cv [::] 1 t) x.
have one : A (fun=> 1) + (1 - A (fun=> 1)) * accept_prob p q cv [::] 1 = 1.
  by have := stays_one x0; rewrite /= stop_one mulr1.
transitivity (A f + (1 - A (fun=> 1)) * stop [::] 1 f).
  rewrite -[LHS]/(block_loop p q cv [::] (t :: x) 1 ([::], 1) (fun b => stop b.1 b.2 f)).
  by rewrite block_loop_cons step_stays.
rewrite -[RHS]/(A f + (1 - A (fun=> 1)) * (accept_prob p q cv [::] 1 * stop [::] 1 f)).
congr (_ + _); rewrite mulrA; congr (_ * _); apply/eqP.
by rewrite subr_eq addrC; apply/eqP; exact: esym one.
Qed.

(* ---- 8.1 (iii)                                                             *)
Variable kept : M F (seq T).
(* nothing is kept that the draft cannot draw                                 *)
Hypothesis kept_dist : dist (fun x => (size x <= L)%N /\ path_prob q [::] x != 0) kept.
Let kept_size : dist (fun x => size x <= L)%N kept.
Proof. by apply: (dist_weaken _ kept_dist) => x []. Qed.

Lemma completed_drafted :
  dist (fun y => size y = L /\ path_prob q [::] y != 0) (completed_draft q L kept).
Proof.
apply: (dist_bind kept_dist) => x [xL x0].
apply: (dist_bind (dist_drafted _ x q_row)) => z [zL z0]; apply: dist_ret.
by rewrite size_cat zL subnKC // path_prob_cat mulf_neq0.
Qed.

Lemma from_injective V : coherent p q V L ->
  (forall f, handed p V L [::] f = walk p L.+1 [::] f) ->
  (forall u, drafted [::] u -> (forall f, \sum_(x : L.-tuple T) u x * handed p V L x f = 0) ->
    forall x, size x = L -> u x = 0) ->
  (forall f, (x <- kept;; handed p V L x) f = walk p L.+1 [::] f) -> draft_law_right q L kept.
Proof.
move=> coh start inj right g; have dw := dist_drafted L [::] q_row.
have size_ A (P : A -> Prop) (Q : A -> Prop) (m : M F A) : dist (fun y => P y /\ Q y) m -> dist P m.
  by apply: dist_weaken => y [].
have dc' := size_ _ _ _ _ completed_drafted; have dw' := size_ _ _ _ _ dw.
pose u x := Pr (completed_draft q L kept) x - Pr (walk q L [::]) x.
have zero x : size x = L -> u x = 0.
  apply: inj => [y y0|f]; rewrite /u.
    have off (m : M F (seq T)) : dist (fun y => size y = L /\ path_prob q [::] y != 0) m ->
        m (fun x => (x == y)%:R) = 0.
      move=> dm; rewrite -[RHS](mul0r (m (fun=> 1))) -(dist_scale dm).
      by apply: (dist_supp dm) => z [_ z0]; rewrite mul0r; case: eqP => // zy; rewrite zy y0 eqxx in z0.
    by rewrite /Pr (off _ completed_drafted) (off _ dw) subrr.
  under eq_bigr do rewrite mulrBl.
  have W : handed p V L [::] f = walk q L [::] (fun y => handed p V L y f).
    by rewrite (coherent_walk (n := L) _ coh).
  rewrite sumrB -(dist_tuple (fun y => handed p V L y f) dc').
  rewrite -(dist_tuple (fun y => handed p V L y f) dw') -W start -right.
  apply/eqP; rewrite subr_eq0; apply/eqP; exact: esym (kept_output coh kept_size f).
rewrite (dist_tuple _ dc') (dist_tuple _ dw'); apply: eq_bigr => y _; congr (_ * _).
by apply/eqP; rewrite -subr_eq0; apply/eqP; exact: (zero y (size_tuple y)).
Qed.

(* one positive target tells whether the kept drafts have the right law       *)
Theorem kept_token_positive : draft_law_right q L kept <->
  forall f, (x <- kept;; handed p (token p q cv) L x) f = walk p L.+1 [::] f.
Proof.
split=> [right f|]; first exact: kept_token.
apply: from_injective => [|f|u du all_f]; [exact: token_coherent | exact: handed_nil |].
apply: (@token_injective L [::] u) => // f; rewrite -[RHS](all_f f); apply: eq_bigr => x _.
by rewrite /handed size_tuple.
Qed.

Theorem kept_block_positive : draft_law_right q L kept <->
  forall f, (x <- kept;; handed p (block p q cv) L x) f = walk p L.+1 [::] f.
Proof.
split=> [right f|]; first exact: kept_block.
apply: from_injective => [|f|u du all_f]; [exact: block_coherent | exact: handed_nil |].
apply: (@block_injective L [::] 1 u) => //; first by rewrite ltr01 lexx.
move=> f; rewrite -[RHS](all_f f); apply: eq_bigr => x _.
have [x0|x0] := eqVneq (path_prob q [::] x) 0; first by rewrite du // !mul0r.
by rewrite block_stays // size_tuple.
Qed.
End Converse.

(* 8.4: a rule that is not pseudo-stopping is lossy on every such pair        *)
Section RulesConverse.
Variables (F : realFieldType) (T : finType) (p q : model F T) (cv : convention F T) (L : nat).
Variable rule : nat -> seq T -> F.
Hypotheses (p_row : is_row p) (q_row : is_row q) (cv_proper : proper cv).
Hypothesis positive : forall c t, q c t != 0 -> 0 < p c t.
Hypothesis rule_ge0 : forall n x, 0 <= rule n x.
Hypothesis rule_one : forall x, size x = L -> \sum_(n < L.+1) rule n x = 1.

Corollary length_rule_token_positive : pseudo_stopping L rule q <->
  forall f, (x <- kept_by L rule q;; handed p (token p q cv) L x) f = walk p L.+1 [::] f.
Proof. by rewrite -pseudo_stopping_right //; apply: kept_token_positive => //; exact: kept_by_dist. Qed.

Corollary length_rule_block_positive : pseudo_stopping L rule q <->
  forall f, (x <- kept_by L rule q;; handed p (block p q cv) L x) f = walk p L.+1 [::] f.
Proof. by rewrite -pseudo_stopping_right //; apply: kept_block_positive => //; exact: kept_by_dist. Qed.
End RulesConverse.
