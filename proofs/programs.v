(* What every lossless verifier obeys, whatever its drafts are: Statements 1.2 *)
(* and 1.3 (necessity), and the antichain program 5.1 as an upper bound.      *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal wrong_rows.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Chain.
Variables (F : realFieldType) (T : finType) (L : nat) (p : model F T) (call : M F (seq T * T)).
Hypotheses (p_row : is_row p) (call_dist : dist (fun o => size o.1 <= L)%N call).
Hypothesis call_lossless : lossless_call p L call.
Implicit Types (a : seq T) (t : T).

Lemma call_le f g : (forall s y, (size s <= L)%N -> f (s, y) <= g (s, y)) -> call f <= call g.
Proof.
move=> fg; rewrite -subr_ge0.
have -> : call g - call f = call (fun o => g o - f o).
  rewrite -[- call f]mulN1r -(dist_scale call_dist) -(dist_add call_dist).
  by apply: (dist_supp call_dist) => o _; rewrite mulN1r.
by apply: (dist_pos' call_dist) => -[s y] sL; rewrite subr_ge0 fg.
Qed.

(* the next token behind an accepted a has the target's row                   *)
Lemma next_mass a t : (size a <= L)%N ->
  call (fun o => (prefix a o.1 && prefix (rcons a t) (rcons o.1 o.2))%:R) = p a t * node_mass call a.
Proof.
move=> aL; have := prefix_mass_step call_dist t p_row aL.
rewrite /prefix_mass !call_lossless !walk_prefix ?size_rcons // ?leqW //.
by rewrite path_prob_rcons mulrC subrr => /esym /eqP; rewrite subr_eq0 => /eqP.
Qed.

(* Statement 1.2: x(a, t) <= p(t | a) x(a)                                     *)
Theorem chain_condition a t : (size a < L)%N ->
  0 <= node_mass call (rcons a t) <= p a t * node_mass call a.
Proof.
move=> aL; rewrite -next_mass ?(ltnW aL) //; apply/andP; split.
  by apply: (dist_pos call_dist) => o; exact: ler0n.
apply: call_le => s y sL /=; rewrite ler_nat.
case E: (prefix (rcons a t) s) => //.
have -> : prefix a s by apply: prefix_trans E; exact: prefix_rcons.
by rewrite (prefix_trans E (prefix_rcons s y)).
Qed.

(* and the output law is R(a, t) = p(t | a) x(a) - x(a, t)                     *)
Theorem output_mass a t : (size a <= L)%N ->
  call (fun o => (o == (a, t))%:R) = p a t * node_mass call a - node_mass call (rcons a t).
Proof.
move=> aL; rewrite -next_mass // -[- node_mass _ _]mulN1r -(dist_scale call_dist).
rewrite -(dist_add call_dist); apply: (dist_supp call_dist) => -[s y] sL /=.
rewrite mulN1r; case E: (prefix (rcons a t) s).
  have as_ : prefix a s by apply: prefix_trans E; exact: prefix_rcons.
  rewrite as_ (prefix_trans E (prefix_rcons s y)) subrr.
  case: eqP => // -[sa _]; move: (size_prefix E).
  by rewrite sa size_rcons ltnn.
rewrite subr0; congr (_%:R); congr nat_of_bool; apply/eqP/andP => [[-> ->]|[as_ at_]].
  by rewrite !prefix_refl.
move: at_; rewrite prefixE size_rcons; have := size_prefix as_.
rewrite leq_eqVlt => /orP[/eqP sa|sa].
  by rewrite sa take_oversize ?size_rcons // eqseq_rcons => /andP[/eqP -> /eqP ->].
move=> at_; case/negP: (negbT E); rewrite prefixE size_rcons.
by move: at_; rewrite -cats1 takel_cat.
Qed.

(* E[tau] is the sum of the node masses                                       *)
Lemma call_mean_tau :
  mean_tau call = \sum_(i < L) \sum_(a : i.+1.-tuple T) node_mass call a.
Proof.
transitivity (call (fun o => \sum_(i < L) \sum_(a : i.+1.-tuple T) (prefix a o.1)%:R)); last first.
  rewrite (dist_sum _ _ call_dist); apply: eq_bigr => i _.
  by rewrite (dist_sum _ _ call_dist).
apply: (dist_supp call_dist) => -[s y] /= sL.
transitivity (\sum_(i < L) (i < size s)%N%:R : F).
  rewrite -natr_sum; congr (_%:R).
  rewrite -[LHS]card_ord -sum1_card (big_ord_widen L (fun=> 1%N) sL) big_mkcond.
  by apply: eq_bigr => i _; case: ifP.
apply: eq_bigr => i _; case: ltnP => [is_|si].
  have ti : size (take i.+1 s) == i.+1 by rewrite size_takel.
  rewrite (bigD1 (Tuple ti)) //= prefixE size_takel // eqxx big1 ?addr0 // => a /eqP ane.
  rewrite prefixE size_tuple; case: eqP => // E; case: ane; exact: val_inj.
rewrite big1 // => a _; case E: (prefix a s) => //.
by have := size_prefix E; rewrite size_tuple ltnNge si.
Qed.
End Chain.

(* ---- the antichain program                                                 *)
Section Antichains.
Variables (F : realFieldType) (T : finType) (L : nat) (p : model F T).
Variables (drafts : M F (seq (seq T))) (drawn : seq (seq T) -> Prop).
Variable verify : seq (seq T) -> M F (seq T * T).
Hypotheses (p_row : is_row p) (drafts_dist : dist drawn drafts).
(* the accepted tokens are a prefix of some draft, of at most L tokens        *)
Hypothesis verify_dist : forall d, drawn d ->
  dist (fun o => (size o.1 <= L)%N && has (prefix o.1) d) (verify d).
Notation call := (d <- drafts;; verify d).

(* P(some draft passes through S)                                              *)
Definition drafted (S : seq (seq T)) : F :=
  drafts (fun d => (has (fun a => has (prefix a) d) S)%:R).
(* no element of S is a prefix of another                                     *)
Definition antichain (S : seq (seq T)) : Prop :=
  uniq S /\ {in S &, forall a b, prefix a b -> a = b}.

Lemma call_size : dist (fun o => size o.1 <= L)%N call.
Proof.
apply: (dist_bind drafts_dist) => d dd; apply: (dist_weaken _ (verify_dist dd)) => o.
by case/andP.
Qed.

Lemma prefixes_of (a b s : seq T) : prefix a s -> prefix b s -> prefix a b \/ prefix b a.
Proof.
move=> as_ bs; have [ab|ba] := leqP (size a) (size b); [left|right].
  by move: as_ bs; rewrite !prefixE => /eqP as_ /eqP <-; rewrite take_take // as_.
by move: as_ bs; rewrite !prefixE => /eqP <- /eqP bs; rewrite take_take ?(ltnW ba) // bs.
Qed.

(* Statement 1.3, necessity                                                    *)
Theorem antichain_bound S : antichain S -> \sum_(a <- S) node_mass call a <= drafted S.
Proof.
case=> S_uniq S_anti; rewrite /node_mass -(dist_sum _ _ call_size) /bind.
rewrite -subr_ge0 -[- drafts _]mulN1r -(dist_scale drafts_dist) -(dist_add drafts_dist).
apply: (dist_pos' drafts_dist) => d dd; rewrite mulN1r subr_ge0.
set hit := has _ S; have dv := verify_dist dd.
have -> : hit%:R = verify d (fun=> hit%:R * 1) by rewrite (dist_scale dv) (dist_one dv) mulr1.
rewrite -subr_ge0 -[- verify _ _]mulN1r -(dist_scale dv) -(dist_add dv).
apply: (dist_pos' dv) => -[s y] /= /andP[_ sd]; rewrite mulN1r mulr1 subr_ge0 -natr_sum ler_nat.
have [/hasP[a aS as_]|no] := boolP (has (fun a => prefix a s) S); last first.
  rewrite big1_seq // => a aS; case as_: (prefix a s) => //.
  by case/hasP: no; exists a.
have -> : hit.
  apply/hasP; exists a => //; case/hasP: sd => x xd sx; apply/hasP; exists x => //.
  exact: prefix_trans as_ sx.
rewrite (bigD1_seq a) //= as_ big1_seq // => b /andP[ba bS].
case bs: (prefix b s) => //; case/eqP: ba.
by case: (prefixes_of as_ bs) => h; [rewrite (S_anti _ _ _ _ h)|rewrite -(S_anti _ _ _ _ h)].
Qed.

(* the constraints of Statement 5.1, and its objective                        *)
Definition feasible (x : seq T -> F) : Prop :=
  [/\ x [::] = 1, forall a t, (size a < L)%N -> 0 <= x (rcons a t) <= p a t * x a
    & forall S, antichain S -> all (fun a => size a <= L)%N S -> \sum_(a <- S) x a <= drafted S].
Definition objective (x : seq T -> F) : F := \sum_(i < L) \sum_(a : i.+1.-tuple T) x a.

(* no lossless verifier accepts more than the best value of the program       *)
Theorem program_bound best : lossless_call p L call ->
  (forall x, feasible x -> objective x <= best) -> mean_tau call <= best.
Proof.
move=> good; rewrite (call_mean_tau call_size); apply; split=> [|a t aL|S S_anti _].
- rewrite -[RHS](dist_one call_size); apply: (dist_supp call_size) => o _.
  by rewrite prefix0s.
- exact: (chain_condition p_row call_size good).
- exact: antichain_bound.
Qed.
End Antichains.
