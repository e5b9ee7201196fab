(* Block verification is optimal among the lossless verifiers of one path.   *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Weights.
Variables (F : realFieldType) (T : finType) (p q : model F T) (cv : convention F T).
Implicit Types (c a : seq T) (w : F).
(* the weights p_i of block verification along a path *)
Fixpoint weight_from c w a : F :=
  if a is t :: a' then weight_from (rcons c t) (next_weight p q cv c w t) a' else w.
Definition weight a : F := weight_from [::] 1 a.

End Weights.

Section Optimal.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Variable cv : convention F T.
Let p_ge0 c t : 0 <= p c t := p_row.1 c t.
Let q_ge0 c t : 0 <= q c t := q_row.1 c t.
Let p1 c : \sum_t p c t = 1 := p_row.2 c.
Let q1 c : \sum_t q c t = 1 := q_row.2 c.

Implicit Types (a s x : seq T) (t y : T).

(* ---- expectations over one iteration of a sane verifier ---- *)
Section OneVerifier.
Variables (L : nat) (V : verifier F T).
Hypothesis V_sane : forall x, size x = L -> sane V x.
Notation EV := (iteration q L V).
Implicit Types (f g : seq T * T -> F).

Lemma sane_le x f g : size x = L ->
  (forall s y, prefix s x -> f (s, y) <= g (s, y)) -> V x f <= V x g.
Proof.
move=> /V_sane Vx fg; pose d o := if prefix o.1 x then g o - f o else 0.
have -> : V x g = V x (fun o => f o + d o).
  by apply: (dist_supp Vx) => -[s y] sx; rewrite /d sx addrC subrK.
rewrite (dist_add Vx) ler_addl; apply: (dist_pos Vx) => -[s y].
by rewrite /d /=; case: ifP => // sx; rewrite subr_ge0 fg.
Qed.

Lemma EV_le f g : (forall s y, (size s <= L)%N -> f (s, y) <= g (s, y)) ->
  EV f <= EV g.
Proof.
move=> fg; apply: walk_le => // x xL; apply: sane_le => // s y /size_prefix.
by rewrite xL; exact: fg.
Qed.

Lemma EV_eq f g : (forall s y, (size s <= L)%N -> f (s, y) = g (s, y)) ->
  EV f = EV g.
Proof.
by move=> fg; apply: le_anti; rewrite !EV_le // => s y sL; rewrite fg.
Qed.

Lemma EV_add f g : EV (fun o => f o + g o) = EV f + EV g.
Proof.
rewrite -[RHS]walkD; apply: walk_ext => x /V_sane Vx; exact: (dist_add Vx).
Qed.

Lemma EV_scale (k : F) f : EV (fun o => k * f o) = k * EV f.
Proof.
rewrite -[RHS]walkZ; apply: walk_ext => x /V_sane Vx; exact: (dist_scale Vx).
Qed.

Lemma EV1 : EV (fun=> 1) = 1.
Proof.
rewrite -[RHS](walk1 q1 L [::]); apply: walk_ext => x /V_sane Vx; exact: (dist_one Vx).
Qed.

Lemma EV_sum (I : Type) (r : seq I) (f : I -> seq T * T -> F) :
  EV (fun o => \sum_(i <- r) f i o) = \sum_(i <- r) EV (f i).
Proof.
elim: r => [|i r IH].
  rewrite big_nil -[RHS](mul0r (EV (fun=> 0))) -EV_scale; apply: EV_eq => s y _.
  by rewrite big_nil mul0r.
rewrite big_cons -IH -EV_add; apply: EV_eq => s y _; by rewrite big_cons.
Qed.

(* P(tau >= i) is the sum of the node masses of depth i *)
Lemma tau_ge_sum i :
  tau_ge (iteration q L V) i = \sum_(a : i.-tuple T) node_mass (iteration q L V) a.
Proof.
rewrite -EV_sum; apply: EV_eq => s y _ /=.
have [is_|si] := leqP i (size s).
  have ti : size (take i s) == i by rewrite size_takel.
  rewrite (bigD1 (Tuple ti)) //= big1 ?addr0 => [|a /eqP ane].
    by rewrite prefixE size_take; case: ltnP; rewrite ?eqxx // => si; rewrite !take_oversize ?eqxx.
  rewrite prefixE size_tuple; case: eqP => // E; case: ane; exact: val_inj.
rewrite big1 // => a _; rewrite prefixE size_tuple take_oversize ?(ltnW si) //.
by case: eqP => // E; move: si; rewrite E size_tuple ltnn.
Qed.

(* E[tau] = sum of P(tau >= i), i = 1 .. L *)
Lemma mean_tau_sum : mean_tau (iteration q L V) = \sum_(i < L) tau_ge (iteration q L V) i.+1.
Proof.
rewrite -EV_sum; apply: EV_eq => s y /= sL.
rewrite -natr_sum; congr (_%:R).
rewrite -[LHS]card_ord -sum1_card (big_ord_widen L (fun=> 1%N) sL) big_mkcond.
by apply: eq_bigr => i _; case: ifP.
Qed.

(* ---- the two constraints on the node masses ---- *)
Lemma node_mass_q a : (size a <= L)%N -> node_mass (iteration q L V) a <= path_prob q [::] a.
Proof.
move=> aL; rewrite -(walk_prefix q_row [::] aL); apply: walk_le => // x xL.
have Vx := V_sane xL.
have -> : (prefix a x)%:R = V x (fun=> (prefix a x)%:R * 1) :> F.
  by rewrite (dist_scale Vx) (dist_one Vx) mulr1.
apply: sane_le => // s y sx /=; rewrite mulr1 ler_nat.
by case ax: (prefix a s) => //; rewrite (prefix_trans ax sx).
Qed.

Hypothesis V_lossless : lossless p q L V.

(* P(completed output starts with a | the call returned (s, y)) *)
Let phi s y a : F :=
  walk p (L - size s) (rcons s y) (fun u => (prefix a (rcons s y ++ u))%:R).

Lemma EV_phi a : (size a <= L.+1)%N ->
  EV (fun o => phi o.1 o.2 a) = path_prob p [::] a.
Proof. by move=> aL; rewrite -(walk_prefix p_row [::] aL) -V_lossless. Qed.

Lemma phi_ge0 s y a : 0 <= phi s y a.
Proof. by apply: walk_ge0 => // u; rewrite ler0n. Qed.

Lemma phi_accepted s y a : prefix a s -> phi s y a = 1.
Proof.
move=> a_s; rewrite -[RHS](walk1 p1 (L - size s) (rcons s y)).
apply: walk_ext => u _.
by rewrite (prefix_trans a_s) // -cats1 -catA prefix_prefix.
Qed.

Lemma phi_stopped s y a : (size s < size a)%N -> (size a <= L.+1)%N ->
  (size s <= L)%N -> 
  phi s y a = (prefix (rcons s y) a)%:R
              * path_prob p (rcons s y) (drop (size (rcons s y)) a).
Proof.
move=> sa aL sL; set d := rcons s y.
have da : (size d <= size a)%N by rewrite size_rcons.
have E u : prefix a (d ++ u) = prefix d a && prefix (drop (size d) a) u.
  rewrite -{1}(cat_take_drop (size d) a) prefix_catr ?size_takel //.
  by rewrite [prefix d a]prefixE.
rewrite /phi -/d; under walk_ext do rewrite E.
case: (prefix d a) => /=; last by rewrite walk0 mul0r.
rewrite mul1r walk_prefix // size_drop size_rcons.
by rewrite leq_subLR addSn subnKC.
Qed.

Lemma phi_step s y a t : (size s <= L)%N -> (size a < L)%N ->
  (prefix (rcons a t) s)%:R + p a t * phi s y a
  <= phi s y (rcons a t) + p a t * (prefix a s)%:R.
Proof.
move=> sL aL; case as_: (prefix a s).
  rewrite phi_accepted // ler_add2r.
  case ats: (prefix (rcons a t) s); last exact: phi_ge0.
  by rewrite phi_accepted // lexx.
have -> : prefix (rcons a t) s = false.
  by apply/negP => /(prefix_trans (prefix_rcons a t)); rewrite as_.
rewrite mulr0 addr0 add0r; have [a_s|s_a] := leqP (size a) (size s).
  rewrite (_ : phi s y a = 0) ?mulr0 ?phi_ge0 //.
  rewrite -[RHS](walk0 p (L - size s) (rcons s y)); apply: walk_ext => u _.
  by rewrite prefixE -cats1 -catA takel_cat // -prefixE as_.
rewrite !phi_stopped ?size_rcons ?ltnS ?(ltnW s_a) ?(ltnW aL) ?(leqW (ltnW aL)) //.
have [/prefixP [b ab] | nsya] := boolP (prefix (rcons s y) a); last first.
  by rewrite mul0r mulr0 mulr_ge0 ?ler0n ?path_prob_ge0.
rewrite ab rcons_cat !prefix_prefix -(size_rcons s y) !drop_size_cat // path_prob_rcons !mul1r.
by rewrite mulrC lexx.
Qed.

Lemma node_mass_p a t : (size a < L)%N ->
  node_mass (iteration q L V) (rcons a t) <= p a t * node_mass (iteration q L V) a.
Proof.
move=> aL.
have H : node_mass (iteration q L V) (rcons a t) + p a t * path_prob p [::] a
    <= path_prob p [::] (rcons a t) + p a t * node_mass (iteration q L V) a.
  rewrite -!EV_phi ?size_rcons ?(leqW (ltnW aL)) ?ltnS ?(ltnW aL) //.
  rewrite /node_mass -!EV_scale -!EV_add; apply: EV_le => s y sL /=.
  exact: phi_step.
by rewrite path_prob_rcons cat0s [_ * p a t]mulrC addrC ler_add2l in H.
Qed.


(* ---- the upper bound ---- *)

Lemma weight_from_rcons c w a t : weight_from p q cv c w (rcons a t) =
  Num.min (weight_from p q cv c w a * ratio p q cv (c ++ a) t) 1.
Proof.
elim: a c w => [|u a IH] c w /=; first by rewrite cats0.
by rewrite IH cat_rcons.
Qed.

Theorem node_mass_le a : (size a <= L)%N ->
  node_mass (iteration q L V) a <= weight p q cv a * path_prob q [::] a.
Proof.
elim/last_ind: a => [|a t IH] aL.
  rewrite /weight /= mulr1 -EV1; apply: EV_le => s y _.
  by rewrite /= prefix0s lexx.
have aL' : (size a < L)%N by rewrite size_rcons in aL.
have xp := node_mass_p t aL'; have xq := node_mass_q aL.
move: xq; rewrite path_prob_rcons cat0s /weight weight_from_rcons cat0s -/(weight p q cv a).
have [->|qn0] := eqVneq (q a t) 0; first by rewrite !mulr0.
have qpos : 0 < q a t by rewrite lt_def qn0 q_ge0.
move=> xq; case: (leP (weight p q cv a * ratio p q cv a t) 1) => _; last by rewrite mul1r.
apply: le_trans xp _; rewrite ratioE (negbTE qn0).
have -> : weight p q cv a * (p a t / q a t) * (path_prob q [::] a * q a t)
  = p a t * (weight p q cv a * path_prob q [::] a) by field.
by rewrite ler_wpmul2l // IH // ltnW.
Qed.

End OneVerifier.
(* ---- block verification attains it ---- *)
Lemma block_best c x w b1 b2 (k : seq T * F -> F) : k b1 = k b2 ->
  block_loop p q cv c x w b1 k = block_loop p q cv c x w b2 k.
Proof.
elim: x c w b1 b2 => [|t x IH] c w b1 b2 kb //=.
by rewrite /bind /coin; congr (_ + _ * _); exact: IH.
Qed.

Lemma block_off c x w b (k : seq T * F -> F) :
  (forall s w', prefix c s -> k (s, w') = 0) -> k b = 0 ->
  block_loop p q cv c x w b k = 0.
Proof.
elim: x c w b => [|t x IH] c w b k0 kb //=.
have k0' s w' : prefix (rcons c t) s -> k (s, w') = 0.
  by move=> cs; apply: k0; apply: prefix_trans cs; exact: prefix_rcons.
by rewrite /bind /coin /= !IH ?mulr0 ?addr0 // k0' // prefix_refl.
Qed.

(* what is needed of the conventions for 0/0 to have probabilities at all    *)
Hypothesis cv_proper : proper cv.
Let ratio0_ge0 c t : 0 <= ratio0 cv c t. Proof. by case: cv_proper. Qed.
Let h0_01 c : 0 <= h0 cv c <= 1. Proof. by case: cv_proper. Qed.
Let res0_row : is_row (res0 cv). Proof. by case: cv_proper. Qed.

Lemma ratio_ge0 c t : 0 <= ratio p q cv c t.
Proof. by rewrite ratioE; case: ifP => // _; rewrite divr_ge0. Qed.

Lemma next_weight_01 c w t : 0 <= w -> 0 <= next_weight p q cv c w t <= 1.
Proof.
by move=> w0; rewrite next_weight_le1 andbT le_minr ler01 andbT mulr_ge0 ?ratio_ge0.
Qed.

Lemma haccept_01 c w : w <= 1 -> 0 <= accept_prob p q cv c w <= 1.
Proof.
move=> w1; rewrite accept_probE; case: eqP => [_|/eqP dn0]; first exact: h0_01.
have S0 := total_gain_ge0 p q c w; set d := total_gain p q c w + 1 - w in dn0 *.
have Sd : total_gain p q c w <= d by rewrite /d -addrA ler_addl subr_ge0.
have d0 : 0 < d by rewrite lt_def dn0 (le_trans S0 Sd).
by rewrite divr_ge0 ?(ltW d0) //= ler_pdivr_mulr // mul1r.
Qed.

Lemma dist_correction L s w : dist (fun=> True) (correction p q cv L s w).
Proof.
rewrite correctionE; case: ifP => _; apply: dist_draw => //.
  move=> t; rewrite residualE; case: ifP => _; first exact: res0_row.1.
  by rewrite divr_ge0 ?gain_ge0 ?total_gain_ge0.
under eq_bigr do rewrite residualE.
case: eqP => [_|/eqP Sn0]; first exact: res0_row.2.
by rewrite -big_distrl /= -total_gainE divff.
Qed.

Lemma dist_token_loop c x : dist (fun s => prefix s (c ++ x)) (token_loop p q cv c x).
Proof.
elim: x c => [|t x IH] c /=; first by apply: dist_ret; rewrite cats0 prefix_refl.
apply: dist_bind (dist_coin _) _.
  by rewrite -[ratio p q cv c t]mul1r next_weight_01 // ler01.
move=> [] _; first by rewrite -cat_rcons; exact: IH.
by apply: dist_ret; rewrite prefix_prefix.
Qed.

Lemma token_sane L x : sane (token p q cv L) x.
Proof.
apply: dist_bind (dist_token_loop [::] x) _ => s sx.
by apply: dist_bind (dist_correction L s 1) _ => y _; exact: dist_ret.
Qed.

Lemma dist_block_loop c x w b : 0 <= w <= 1 -> prefix b.1 (c ++ x) ->
  dist (fun b => prefix b.1 (c ++ x)) (block_loop p q cv c x w b).
Proof.
elim: x c w b => [|t x IH] c w b /andP[w0 w1] bx; first exact: dist_ret.
have w'01 := next_weight_01 c t w0.
apply: dist_bind (dist_coin _) _.
  by case: (x) => // *; apply: haccept_01; case/andP: w'01.
move=> ok _; rewrite -cat_rcons; apply: IH => //; rewrite cat_rcons.
by case: ok => //=; rewrite -cat_rcons prefix_prefix.
Qed.

Lemma block_sane L x : sane (block p q cv L) x.
Proof.
have db : dist (fun b => prefix b.1 x) (block_loop p q cv [::] x 1 ([::], 1)).
  by apply: (@dist_block_loop [::] x); rewrite ?ler01 ?lexx ?prefix0s.
apply: (dist_bind (k := fun b => y <- correction p q cv L b.1 b.2;; ret (b.1, y)) db).
move=> b bx.
by apply: dist_bind (dist_correction L b.1 b.2) _ => y _; exact: dist_ret.
Qed.

Section NodeMass.
Variables (L : nat) (a : seq T).
Let k (b : seq T * F) : F := correction p q cv L b.1 b.2 (fun=> (prefix a b.1)%:R).

Let k_off s w : ~~ prefix a s -> k (s, w) = 0.
Proof.
move=> /negbTE as_; rewrite /k correctionE /= as_.
by case: ifP => _; rewrite drawE big1 // => t _; rewrite mulr0.
Qed.

Lemma block_node c w b a' n : a = c ++ a' -> a' != [::] -> (size c + n)%N = L ->
  (size a' <= n)%N -> 0 <= w -> k b = 0 ->
  walk q n c (fun x => block_loop p q cv c x w b k)
  = path_prob q c a' * weight_from p q cv c w a'.
Proof.
elim: a' c w b n => [//|t a' IH] c w b [//|n] ac _ cL a'n w0 kb.
rewrite walkS (bigD1 t) // big1 => [|u ut]; last first.
  rewrite (@walk_ext _ _ _ _ _ _ (fun=> 0)) ?walk0 ?mulr0 // => x _.
  have off s w' : prefix (rcons c u) s -> k (s, w') = 0.
    move=> cus; apply: k_off; apply/negP => as_.
    move: cus as_ => /prefixP [s' ->]; rewrite ac cat_rcons.
    by rewrite prefix_catr // eqxx prefix_cons eq_sym (negbTE ut).
  by rewrite /= /bind /coin /= !block_off ?mulr0 ?addr0 // off ?prefix_refl.
have ac' : a = rcons c t ++ a' by rewrite cat_rcons.
have cL' : (size (rcons c t) + n)%N = L by rewrite size_rcons addSnnS.
rewrite /= addr0.
have [q0 | qn0] := eqVneq (q c t) 0; first by rewrite /= q0 !mul0r.
have w'0 : 0 <= next_weight p q cv c w t by exact: next_weight_ge0.
rewrite /= -mulrA; congr (_ * _).
have [a'0 | a'n0] := eqVneq a' [::].
  rewrite a'0 cats0 in ac'; rewrite a'0 /= mul1r.
  have := @block_main F T p q cv p_row q_row L a k (fun=> 1) _ _ _
            n (rcons c t) (next_weight p q cv c w t) b cL'.
  move=> ->.
  - by rewrite kb mulr1 mulr0 addr0.
  - by move=> s _ _; under eq_bigr do rewrite mulr1; rewrite p1.
  - move=> s w' as_ sL; rewrite /k /= as_ correctionE sL eqxx drawE.
    by under eq_bigr do rewrite mulr1; rewrite p1.
  - move=> s w' as_ sL; rewrite /k /= as_ correctionE ltn_eqF // drawE.
    rewrite big_distrr /=; apply: eq_bigr => y _.
    by rewrite mulrA gain_residual.
  - by rewrite ac' prefix_refl.
  - by rewrite w'0 next_weight_le1.
have kc : k (rcons c t, next_weight p q cv c w t) = 0.
  apply: k_off; apply/negP => /size_prefix.
  by rewrite ac' size_cat -[X in (_ <= X)%N]addn0 leq_add2l leqn0 size_eq0 (negbTE a'n0).
rewrite -(IH (rcons c t) _ b n) //.
apply: walk_ext => x _; rewrite /bind /coin /=.
rewrite (@block_best _ x _ _ b k); last by rewrite kc kb.
by rewrite -mulrDl addrC subrK mul1r.
Qed.

Theorem block_node_mass : (size a <= L)%N ->
  node_mass (iteration q L (block p q cv L)) a = weight p q cv a * path_prob q [::] a.
Proof.
move=> aL; have [a0 | an0] := eqVneq a [::].
  have bs x : size x = L -> sane (block p q cv L) x by move=> _; exact: block_sane.
  rewrite a0 /weight /= mulr1 -[RHS](EV1 bs).
  by apply: (EV_eq bs) => s y _; rewrite /= prefix0s.
rewrite mulrC; apply: (@block_node [::] 1 ([::], 1) a L) => //.
by apply: k_off; rewrite prefixs0.
Qed.
End NodeMass.

(* ---- the theorem ---- *)
Theorem block_optimal_tau L V i :
  (forall x, size x = L -> sane V x) -> lossless p q L V -> (i <= L)%N ->
  tau_ge (iteration q L V) i <= tau_ge (iteration q L (block p q cv L)) i.
Proof.
move=> Vs Vl iL; rewrite !tau_ge_sum //; last by move=> x _; exact: block_sane.
apply: ler_sum => a _; have aL : (size a <= L)%N by rewrite size_tuple.
by rewrite block_node_mass // node_mass_le.
Qed.

Theorem block_optimal L V :
  (forall x, size x = L -> sane V x) -> lossless p q L V ->
  mean_tau (iteration q L V) <= mean_tau (iteration q L (block p q cv L)).
Proof.
move=> Vs Vl; rewrite !mean_tau_sum //; last by move=> x _; exact: block_sane.
by apply: ler_sum => i _; exact: block_optimal_tau.
Qed.

Corollary block_beats_token L :
  mean_tau (iteration q L (token p q cv L)) <= mean_tau (iteration q L (block p q cv L)).
Proof.
apply: block_optimal; last exact: token_lossless.
by move=> x _; exact: token_sane.
Qed.

(* ---- losslessness as sums over drafted paths ---- *)
Corollary token_lossless_sum L b : size b = L.+1 ->
  \sum_(x : L.-tuple T) path_prob q [::] x *
     Pr ('(s, y) <- token p q cv L x;;
         u <- walk p (L - size s) (rcons s y);; ret (rcons s y ++ u)) b
  = path_prob p [::] b.
Proof.
move=> bL; have := token_lossless cv p_row q_row L (fun s => (s == b)%:R).
rewrite -[RHS]/(Pr (walk p L.+1 [::]) b) walk_law // bL eqxx mul1r => <-.
by rewrite /continued /bind2 /iteration {2}/bind walk_sum.
Qed.

Corollary block_lossless_sum L b : size b = L.+1 ->
  \sum_(x : L.-tuple T) path_prob q [::] x *
     Pr ('(s, y) <- block p q cv L x;;
         u <- walk p (L - size s) (rcons s y);; ret (rcons s y ++ u)) b
  = path_prob p [::] b.
Proof.
move=> bL; have := block_lossless cv p_row q_row L (fun s => (s == b)%:R).
rewrite -[RHS]/(Pr (walk p L.+1 [::]) b) walk_law // bL eqxx mul1r => <-.
by rewrite /continued /bind2 /iteration {2}/bind walk_sum.
Qed.

End Optimal.


