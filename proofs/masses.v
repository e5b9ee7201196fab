(* Statement 1.3 for one path: the node masses that some lossless verifier has. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal prefix_tests.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Masses.
Variables (F : realFieldType) (T : finType) (p q : model F T) (L : nat).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Notation Q a := (path_prob q [::] a).
Implicit Types (a c s : seq T) (t y : T).

(* the conditions: x(a) at most the probability that a is drafted, and the    *)
(* chain conditions of Statement 1.2                                          *)
Definition possible_masses (x : seq T -> F) : Prop :=
  [/\ x [::] = 1, forall a t, (size a < L)%N -> 0 <= x (rcons a t) <= p a t * x a
    & forall a, (size a <= L)%N -> x a <= Q a].

Section Sufficient.
Variable x : seq T -> F.
Hypothesis x_possible : possible_masses x.
Let x_start : x [::] = 1. Proof. by case: x_possible. Qed.
Let x_chain a t : (size a < L)%N -> x (rcons a t) <= p a t * x a.
Proof. by case: x_possible => _ chain _ /(chain a t) /andP[]. Qed.
Let x_q a : (size a <= L)%N -> x a <= Q a. Proof. by case: x_possible => _ _; exact. Qed.

Lemma x_ge0 a : (size a <= L)%N -> 0 <= x a.
Proof.
case/lastP: a => [|a t]; first by rewrite x_start ler01.
by rewrite size_rcons; case: x_possible => _ chain _ /(chain a t) /andP[].
Qed.

Lemma Q_ge0 a : 0 <= Q a. Proof. exact: path_prob_ge0. Qed.

(* ---- the verifier                                                          *)
(* P(tau >= |a|), given that a is drafted                                      *)
Definition share a : F := x a / Q a.
Definition test a : F :=
  if size a == L then share a
  else if longer q share a == 1 then 0 else (share a - longer q share a) / (1 - longer q share a).
Definition left_mass a : F := x a - \sum_t x (rcons a t).
Definition left_row a t : F :=
  if left_mass a == 0 then p a t else (p a t * x a - x (rcons a t)) / left_mass a.
Definition masses_verify (xs : seq T) : M F (seq T * T) :=
  s <- tests_loop test [::] xs [::];;
  y <- (if size s == L then draw (p s) else draw (left_row s));; ret (s, y).

Lemma share_mass a : (size a <= L)%N -> Q a * share a = x a.
Proof.
move=> aL; rewrite /share; have [a0|a0] := eqVneq (Q a) 0; last by rewrite mulrCA divff // mulr1.
rewrite a0 mul0r; apply/eqP; rewrite eq_le x_ge0 //=.
by have := x_q aL; rewrite a0.
Qed.

Lemma share_01 a : (size a <= L)%N -> 0 <= share a <= 1.
Proof.
move=> aL; rewrite /share divr_ge0 ?x_ge0 ?Q_ge0 //=.
have [->|a0] := eqVneq (Q a) 0; first by rewrite invr0 mulr0 ler01.
by rewrite ler_pdivr_mulr ?mul1r ?x_q // lt_def a0 Q_ge0.
Qed.

Lemma longer_mass a : (size a < L)%N -> Q a * longer q share a = \sum_t x (rcons a t).
Proof.
move=> aL; rewrite /longer big_distrr /=; apply: eq_bigr => t _.
by rewrite mulrA -[X in X * _]/(path_prob q [::] a * q ([::] ++ a) t) -path_prob_rcons share_mass // size_rcons.
Qed.

Lemma sum_le a : (size a < L)%N -> \sum_t x (rcons a t) <= x a.
Proof.
move=> aL; rewrite -[X in _ <= X]mul1r -(p_row.2 a) big_distrl /=.
by apply: ler_sum => t _; exact: x_chain.
Qed.

Lemma longer_le a : (size a < L)%N -> longer q share a <= share a.
Proof.
move=> aL; have [a0|a0] := eqVneq (Q a) 0.
  rewrite /share a0 invr0 mulr0 /longer big1 // => t _.
  by rewrite /share path_prob_rcons a0 mul0r invr0 !mulr0.
have Qa : 0 < Q a by rewrite lt_def a0 Q_ge0.
by rewrite -(ler_pmul2l Qa) longer_mass // share_mass ?sum_le // ltnW.
Qed.

Lemma longer_ge0 a : (size a < L)%N -> 0 <= longer q share a.
Proof.
move=> aL; apply: sumr_ge0 => t _; rewrite mulr_ge0 ?q_row.1 //.
by have /andP[] : 0 <= share (rcons a t) <= 1 by rewrite share_01 // size_rcons.
Qed.

Lemma share_start : share [::] = 1.
Proof. by rewrite /share x_start divr1. Qed.

Lemma test_mid a : (size a < L)%N -> Q a != 0 ->
  (1 - longer q share a) * test a = share a - longer q share a.
Proof.
move=> aL _; rewrite /test ltn_eqF //; case: eqP => [l1|/eqP l1].
  have /andP[_ s1] := share_01 (ltnW aL); have := longer_le aL; rewrite l1 => ls.
  by rewrite subrr mul0r; apply/esym/eqP; rewrite subr_eq0 eq_le s1.
by field; rewrite subr_eq0 eq_sym.
Qed.

Lemma test_01 a : (size a <= L)%N -> 0 <= test a <= 1.
Proof.
move=> aL; rewrite /test; case: eqP => [_|/eqP aL']; first exact: share_01.
have {aL aL'} aL : (size a < L)%N by rewrite ltn_neqAle aL'.
case: eqP => [_|/eqP l1]; first by rewrite lexx ler01.
have /andP[_ s1] := share_01 (ltnW aL); have ls := longer_le aL.
have d0 : 0 < 1 - longer q share a by rewrite lt_def subr_eq0 eq_sym l1 subr_ge0 (le_trans ls).
by rewrite divr_ge0 ?(ltW d0) ?subr_ge0 //= ler_pdivr_mulr // mul1r ler_add2r.
Qed.

Lemma left_ge0 a t : (size a < L)%N -> 0 <= p a t * x a - x (rcons a t).
Proof. by move=> aL; rewrite subr_ge0 x_chain. Qed.

Lemma left_sum a : \sum_t (p a t * x a - x (rcons a t)) = left_mass a.
Proof. by rewrite sumrB -big_distrl /= p_row.2 mul1r. Qed.

Lemma left_row_mass a t : (size a < L)%N -> left_mass a * left_row a t = p a t * x a - x (rcons a t).
Proof.
move=> aL; rewrite /left_row; case: eqP => [l0|/eqP l0]; last by rewrite mulrCA divff // mulr1.
rewrite l0 mul0r; symmetry.
have s0 : \sum_y (p a y * x a - x (rcons a y)) = 0 by rewrite left_sum.
exact: (psumr_eq0P (fun y _ => left_ge0 y aL) s0).
Qed.

Lemma left_row_dist a : (size a < L)%N -> dist (fun=> True) (draw (left_row a)).
Proof.
move=> aL; have l0 : 0 <= left_mass a by rewrite subr_ge0 sum_le.
apply: dist_draw => [t|]; rewrite /left_row; case: eqP => [_|/eqP n0].
- exact: p_row.1.
- by rewrite divr_ge0 // left_ge0.
- exact: p_row.2.
- by rewrite -big_distrl /= left_sum divff.
Qed.

Lemma masses_sane xs : size xs = L -> sane masses_verify xs.
Proof.
move=> xL; have loop c ys best : (size c + size ys <= L)%N -> prefix best (c ++ ys) ->
    dist (fun s => prefix s (c ++ ys)) (tests_loop test c ys best).
  elim: ys c best => [|t ys IH] c best cL bc; first exact: dist_ret.
  have cL' : (size (rcons c t) + size ys <= L)%N by rewrite size_rcons addSnnS.
  apply: dist_bind (dist_coin (test_01 _)) _; first exact: leq_trans (leq_addr _ _) cL'.
  move=> ok _; rewrite -cat_rcons; apply: IH => //.
  by case: ok; rewrite ?prefix_prefix // cat_rcons.
have d := loop [::] xs [::]; rewrite add0n xL leqnn prefix0s in d.
apply: dist_bind (d isT isT) _ => s sx; have sL : (size s <= L)%N by rewrite -xL size_prefix.
apply: (@dist_bind _ _ _ (fun=> True)) => [|y _]; last exact: dist_ret.
case: eqP => [_|/eqP sL']; first exact: dist_draw (p_row.1 s) (p_row.2 s).
by apply: left_row_dist; rewrite ltn_neqAle sL'.
Qed.

Definition value s (f : seq T * T -> F) : F :=
  (if size s == L then draw (p s) else draw (left_row s)) (fun y => f (s, y)).

Lemma masses_stops f :
  iteration q L masses_verify f = stops q share (fun s => value s f) L [::].
Proof.
have test_end s : size s = L -> Q s != 0 -> test s = share s by move=> sL _; rewrite /test sL eqxx.
by rewrite -(tests_stops q_row share_start test_end test_mid).
Qed.

Lemma masses_lossless : lossless p q L masses_verify.
Proof.
move=> f; pose k o := cont p (L - size o.1) (rcons o.1 o.2) f.
rewrite -[LHS]/(iteration q L masses_verify k) masses_stops -[RHS]/(cont p L.+1 [::] f).
suff H n c : (size c + n)%N = L ->
    Q c * stops q share (fun s => value s k) n c = x c * cont p n.+1 c f.
  by have := H L [::] erefl; rewrite x_start !mul1r.
elim: n c => [|n IH] c cL.
  have cL' : size c = L by rewrite -cL addn0.
  rewrite /= mulrA share_mass ?cL' //; congr (_ * _).
  by rewrite /value cL' eqxx drawE contS /k /= cL' subnn.
have cltL : (size c < L)%N by rewrite -cL addnS ltnS leq_addr.
have -> : Q c * stops q share (fun s => value s k) n.+1 c = left_mass c * value c k
    + \sum_t Q (rcons c t) * stops q share (fun s => value s k) n (rcons c t).
  rewrite /= mulrDr mulrA mulrBr share_mass ?(ltnW cltL) // longer_mass // big_distrr /=.
  by congr (_ + _); apply: eq_bigr => t _; rewrite path_prob_rcons cat0s mulrA.
have -> : left_mass c * value c k = \sum_t (p c t * x c - x (rcons c t)) * cont p n.+1 (rcons c t) f.
  rewrite /value ltn_eqF // drawE big_distrr; apply: eq_bigr => t _ /=.
  by rewrite mulrA left_row_mass // /k /= -cL addKn.
rewrite -big_split contS big_distrr; apply: eq_bigr => t _ /=.
rewrite IH ?size_rcons ?addSnnS // -mulrDl subrK; ring.
Qed.

Lemma masses_attained a : (size a <= L)%N -> node_mass (iteration q L masses_verify) a = x a.
Proof.
move=> aL; rewrite /node_mass masses_stops -[RHS]share_mass // -(@stops_prefix _ _ q share L [::] a aL).
apply: stops_ext => s sL; have d : dist (fun=> True) (if size s == L then draw (p s) else draw (left_row s)).
  case: eqP => [_|/eqP sL']; first exact: dist_draw (p_row.1 s) (p_row.2 s).
  by apply: left_row_dist; rewrite ltn_neqAle sL' -(add0n L).
rewrite /value -[RHS]mulr1 -(dist_one d) -(dist_scale d); apply: (dist_supp d) => y _.
by rewrite mulr1.
Qed.
End Sufficient.

(* exactly these masses belong to a lossless verifier of one path              *)
Theorem one_path_masses x : possible_masses x <->
  exists verify, [/\ forall xs, size xs = L -> sane verify xs, lossless p q L verify
    & [/\ x [::] = 1 & forall a, (size a <= L)%N -> node_mass (iteration q L verify) a = x a]].
Proof.
split=> [possible|[verify [vs good [x1 xE]]]].
  exists (masses_verify x); split; [exact: masses_sane | exact: masses_lossless|].
  by split; [case: possible | exact: masses_attained].
split=> // [a t aL|a aL]; last by rewrite -xE // node_mass_q.
have aL' : (size (rcons a t) <= L)%N by rewrite size_rcons.
rewrite -!xE ?(ltnW aL) //; apply/andP; split; last exact: node_mass_p.
rewrite -(walk0 q L [::]) /node_mass /iteration /bind; apply: walk_le => // xs xL.
by apply: (dist_pos (vs xs xL)) => o; exact: ler0n.
Qed.

(* Statement 4.1: block verification solves the program of one path           *)
Theorem one_path_program cv : proper cv ->
  possible_masses (node_mass (iteration q L (block p q cv L))) /\
  forall x, possible_masses x ->
    \sum_(i < L) \sum_(a : i.+1.-tuple T) x a <= mean_tau (iteration q L (block p q cv L)).
Proof.
move=> cv_proper; split=> [|x /one_path_masses[verify [vs good [_ xE]]]].
  apply/one_path_masses; exists (block p q cv L); split; last split=> //.
  - by move=> xs _; exact: block_sane.
  - exact: block_lossless.
  - by rewrite block_node_mass // /weight /= mulr1.
rewrite (_ : \sum_(i < L) _ = mean_tau (iteration q L verify)); first exact: block_optimal.
rewrite mean_tau_sum //; apply: eq_bigr => i _; rewrite tau_ge_sum //; apply: eq_bigr => a _.
by rewrite xE // size_tuple ltn_ord.
Qed.
End Masses.
