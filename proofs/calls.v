(* Statement 1.1, and any number of calls (Statement 1.4, block2024 Theorem 1). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Laws.
Variables (F : realFieldType) (T : finType).

Variables (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).

Lemma dist_iteration L V : (forall x, size x = L -> sane V x) ->
  dist (fun o : seq T * T => (size o.1 <= L)%N) (iteration q L V).
Proof.
move=> Vs; apply: (dist_bind (dist_walk L [::] q_row)) => x xL.
apply: (dist_weaken (P := fun o => prefix o.1 x)); last exact: Vs.
by move=> o /size_prefix; rewrite xL.
Qed.

Lemma dist_completed L V : (forall x, size x = L -> sane V x) ->
  dist (fun b => size b = L.+1) (continued p L (iteration q L V)).
Proof.
move=> Vs; apply: (dist_bind2 (dist_iteration Vs)) => -[s y] /= sL.
apply: (dist_bind (dist_walk _ _ p_row)) => u un; apply: dist_ret.
by rewrite size_cat size_rcons un addSn subnKC.
Qed.

Theorem lossless_law L V : (forall x, size x = L -> sane V x) ->
  lossless p q L V <->
  forall b, size b = L.+1 -> Pr (continued p L (iteration q L V)) b = path_prob p [::] b.
Proof.
move=> Vs; split=> [Vl b bL|Vl f].
  by rewrite /Pr Vl -/(Pr _ b) walk_law // bL eqxx mul1r.
rewrite (dist_tuple _ (dist_completed Vs)) walk_sum; apply: eq_bigr => b _.
by rewrite Vl // size_tuple.
Qed.

(* Statement 1.1. R(b) = P(X^tau = b_1..b_{i-1}, Y = b_i).                   *)
Definition output_law L (V : verifier F T) (b : seq T) : F :=
  iteration q L V (fun o => (rcons o.1 o.2 == b)%:R).

Lemma completed_law L V b : (forall x, size x = L -> sane V x) -> size b = L.+1 ->
  Pr (continued p L (iteration q L V)) b =
  \sum_(1 <= i < L.+2) output_law L V (take i b) * path_prob p (take i b) (drop i b).
Proof.
move=> Vs bL; have di := dist_iteration Vs.
under eq_bigr do rewrite mulrC /output_law -(dist_scale di).
rewrite -(dist_sum _ _ di); apply: (dist_supp di) => -[s y] /= sL.
set d := rcons s y; have sd : size d = (size s).+1 by rewrite size_rcons.
have dL : (size d <= L.+1)%N by rewrite sd.
rewrite (bigD1_seq (size d)) ?mem_index_iota ?iota_uniq ?sd ?ltnS ?sL //=.
rewrite big1_seq ?addr0 => [|i /andP[id]]; last first.
  rewrite mem_index_iota ltnS => /andP[_ iL].
  case: eqP => [E|_]; last by rewrite mulr0.
  by case/eqP: id; rewrite -sd -/d E size_takel // bL.
rewrite -sd; have [E|nE] := eqVneq d (take (size d) b).
  have W := walk_law p_row (L - size s) d (drop (size d) b).
  have sz : size (drop (size d) b) = (L - size s)%N by rewrite size_drop bL sd subSS.
  rewrite sz eqxx mul1r in W.
  rewrite mulr1 -E -W /bind /ret -/d; apply: walk_ext => u _.
  by rewrite -[X in _ == X](cat_take_drop (size d) b) -E eqseq_cat // eqxx E.
rewrite mulr0 -[RHS](walk0 p (L - size s) d) /bind /ret -/d.
apply: walk_ext => u _.
case: eqP => // E; case/eqP: nE.
by rewrite -E take_size_cat.
Qed.

Lemma path_prob_cat (r : model F T) c x z : path_prob r c (x ++ z) = path_prob r c x * path_prob r (c ++ x) z.
Proof.
elim: x c => [|t x IH] c /=; first by rewrite cats0 mul1r.
by rewrite IH mulrA cat_rcons.
Qed.

Theorem validity_equation L V : (forall x, size x = L -> sane V x) ->
  lossless p q L V <->
  forall b, size b = L.+1 -> path_prob p [::] b > 0 ->
    \sum_(1 <= i < L.+2) output_law L V (take i b) / path_prob p [::] (take i b) = 1.
Proof.
move=> Vs.
(* the completed law is p(b) times the left side *)
have E b : size b = L.+1 -> path_prob p [::] b > 0 -> Pr (continued p L (iteration q L V)) b =
    path_prob p [::] b * \sum_(1 <= i < L.+2) output_law L V (take i b) / path_prob p [::] (take i b).
  move=> bL b0; rewrite completed_law // big_distrr /=; apply: eq_bigr => i _.
  move: b0; rewrite -{1 5}(cat_take_drop i b) path_prob_cat cat0s.
  move=> /gt_eqF /negbT; rewrite mulf_eq0 negb_or => /andP[a0 _]; by field.
rewrite (lossless_law Vs); split=> H.
  move=> b bL b0; have n0 : path_prob p [::] b != 0 by rewrite gt_eqF.
  by apply: (mulfI n0); rewrite mulr1 -E // H.
have dc := dist_completed Vs.
have le (b : L.+1.-tuple T) : 0 <= Pr (continued p L (iteration q L V)) b - path_prob p [::] b.
  rewrite subr_ge0; have [b0|] := ltP 0 (path_prob p [::] b).
    by rewrite E ?size_tuple // H ?size_tuple // mulr1.
  move=> b0; apply: (le_trans b0); apply: (dist_pos dc) => x; exact: ler0n.
have sum0 : \sum_(b : L.+1.-tuple T) (Pr (continued p L (iteration q L V)) b - path_prob p [::] b) = 0.
  rewrite sumrB; apply/eqP; rewrite subr_eq0; apply/eqP.
  transitivity (continued p L (iteration q L V) (fun=> 1)).
    by rewrite (dist_tuple _ dc); apply: eq_bigr => b _; rewrite mulr1.
  rewrite (dist_one dc) -[LHS](walk1 p_row.2 L.+1 [::]) walk_sum.
  by apply: eq_bigr => b _; rewrite mulr1.
have z (c : L.+1.-tuple T) : Pr (continued p L (iteration q L V)) c - path_prob p [::] c = 0.
  exact: (psumr_eq0P (fun b _ => le b) sum0).
move=> b /eqP bL; have := z (Tuple bL).
by move/eqP; rewrite subr_eq0 => /eqP.
Qed.
End Laws.

Section Calls.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).

Variables (L : seq T -> nat) (V : seq T -> verifier F T).

(* the first N tokens of the text, continued by the target where it is short *)
Definition text n c N : M F (seq T) :=
  s <- specdec q L V n c;; u <- walk p (N - size s) (c ++ s);; ret (take N (s ++ u)).

Hypothesis V_sane : forall c x, size x = L c -> sane (V c) x.
Hypothesis V_lossless :
  forall c, lossless (behind p c) (behind q c) (L c) (V c).

Lemma behind_row (r : model F T) c : is_row r -> is_row (behind r c).
Proof. by move=> [r0 r1]; split=> *; [exact: r0|exact: r1]. Qed.

Lemma walk_behind (r : model F T) n c d (f : seq T -> F) :
  walk (behind r c) n d f = walk r n (c ++ d) f.
Proof.
elim: n d f => [//|n IH] d f; rewrite !walkS; apply: eq_bigr => t _.
by rewrite IH rcons_cat.
Qed.

(* n tokens, then enough for m: the law of the first m                       *)
Lemma walk_resize n m c (h : seq T -> F) :
  walk p n c (fun x => walk p (m - n) (c ++ x) (fun v => h (take m (x ++ v))))
  = walk p m c h.
Proof.
elim: n m c h => [|n IH] m c h.
  rewrite subn0 /= /ret cats0; apply: walk_ext => x xm.
  by rewrite take_oversize // xm.
rewrite walkS; case: m => [|m].
  rewrite (eq_bigr (fun t => p c t * h [::])) => [|t _].
    by rewrite -big_distrl /= p_row.2 mul1r.
  congr (_ * _); rewrite -[RHS](walk1 p_row.2 n (rcons c t)).
  by apply: walk_ext => x _.
rewrite [RHS]walkS; apply: eq_bigr => t _; congr (_ * _); rewrite -[RHS]IH.
by apply: walk_ext => x _; rewrite subSS cat_rcons.
Qed.

Lemma specdec_ext n c f g : (forall s, f s = g s) -> specdec q L V n c f = specdec q L V n c g.
Proof.
elim: n c f g => [|n IH] c f g fg /=; first exact: fg.
rewrite /bind2 /bind /ret; apply: (EV_eq (behind_row c q_row) (V_sane (c := c))) => s y _.
by apply: IH => x; exact: fg.
Qed.

Theorem specdec_lossless n c N f : text n c N f = walk p N c f.
Proof.
elim: n c N f => [|n IH] c N f.
  rewrite /text /= /bind /ret /= subn0 cats0; apply: walk_ext => u uN.
  by rewrite take_oversize // uN.
rewrite -[RHS](walk_resize (L c).+1 N c).
have := @V_lossless c (fun x => walk p (N - (L c).+1) (c ++ x)
                                  (fun v => f (take N (x ++ v)))).
rewrite walk_behind cats0 => <-.
rewrite /text /continued /= /bind2 /bind /ret.
apply: (EV_eq (behind_row c q_row) (V_sane (c := c))) => s y sL.
set d := rcons s y; have sd : size d = (size s).+1 by rewrite size_rcons.
have tk x : take N (d ++ x) = take N (d ++ take (N - size d) x).
  by rewrite !take_cat; case: ltnP => // _; rewrite take_take.
transitivity (walk p (N - size d) (c ++ d) (fun x => f (take N (d ++ x)))).
  rewrite -[RHS](IH (c ++ d) (N - size d)%N (fun x => f (take N (d ++ x)))).
  rewrite /text; apply: specdec_ext => x; rewrite /bind /ret /= -/d size_cat subnDA.
  by rewrite catA; apply: walk_ext => u _; rewrite -catA tk.
rewrite -[LHS](walk_resize (L c - size s)) /= -/d walk_behind.
apply: walk_ext => u _; rewrite sd -subnDA addSn subnKC // catA.
by apply: walk_ext => v _; rewrite -sd -tk catA.
Qed.

Lemma specdec_size n c : dist (fun s => (n <= size s)%N) (specdec q L V n c).
Proof.
elim: n c => [|n IH] c /=; first exact: dist_ret.
apply: (dist_bind2 (dist_iteration (behind_row c q_row) (V_sane (c := c)))) => -[s y] /= _.
apply: (dist_bind (IH _)) => x nx; apply: dist_ret.
by rewrite size_cat size_rcons addSn ltnS (leq_trans nx) // leq_addl.
Qed.

(* the first N tokens of N or more calls, without any completion *)
Corollary specdec_text n c N f : (N <= n)%N ->
  specdec q L V n c (fun s => f (take N s)) = walk p N c f.
Proof.
move=> Nn; rewrite -(specdec_lossless n); apply: (dist_supp (specdec_size n c)) => s ns.
have Ns : (N <= size s)%N := leq_trans Nn ns.
have -> : (N - size s = 0)%N by apply/eqP.
by rewrite /bind /ret /= /ret cats0.
Qed.
End Calls.

(* Algorithm 3 with token and with block verification, any draft lengths     *)
Section Printed.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Variable cv : convention F T.
Hypothesis cv_proper : proper cv.
Variable (L : seq T -> nat).

Corollary specdec_token n N f : (N <= n)%N ->
  specdec q L (fun c => token (behind p c) (behind q c) cv (L c)) n [::]
    (fun s => f (take N s)) = walk p N [::] f.
Proof.
move=> Nn; apply: specdec_text => // [c x _|c].
  by apply: token_sane => //; exact: behind_row.
by apply: token_lossless; exact: behind_row.
Qed.

Corollary specdec_block n N f : (N <= n)%N ->
  specdec q L (fun c => block (behind p c) (behind q c) cv (L c)) n [::]
    (fun s => f (take N s)) = walk p N [::] f.
Proof.
move=> Nn; apply: specdec_text => // [c x _|c].
  by apply: block_sane => //; exact: behind_row.
by apply: block_lossless; exact: behind_row.
Qed.
End Printed.
