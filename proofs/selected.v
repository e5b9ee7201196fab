(* A selected path of law r, followed by block verification with the rows of  *)
(* r, is lossless (greedy2026 Lemma 4.4; docs/theory.md Statement 5.3).       *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal.
From Spectheory Require Import spec.greedy_multipath.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Selected.
Variables (F : realFieldType) (T : finType).
Implicit Types (p r : model F T) (a x : seq T) (f : seq T -> F).

(* select is any program that returns a path; the drafts are inside of it     *)
Variables (L : nat) (select : M F (seq T)).
Hypothesis select_dist : dist (fun x => size x = L) select.

(* P(the selected path starts with a) *)
Definition selected_mass a : F := select (fun x => (prefix a x)%:R).

(* what passes through a goes on with one of the tokens                       *)
Lemma selected_mass_split a : (size a < L)%N ->
  \sum_t selected_mass (rcons a t) = selected_mass a.
Proof.
move=> aL; rewrite -(dist_sum _ _ select_dist); apply: (dist_supp select_dist) => x xL.
have [ax|nax] := boolP (prefix a x); last first.
  rewrite big1 // => t _; case: (boolP (prefix _ _)) => // rx.
  by rewrite (prefix_trans (prefix_rcons _ _) rx) in nax.
have /prefixP[[|t x'] xE] := ax; first by move: aL; rewrite -xL xE cats0 ltnn.
rewrite (bigD1 t) //= xE -cat_rcons prefix_prefix big1 ?addr0 // => t' tt'.
rewrite prefixE size_rcons -[(size a).+1](size_rcons a t) take_size_cat //.
by rewrite eqseq_rcons eqxx /= eq_sym (negbTE tt').
Qed.

(* r is the law of the selected path if its rows divide the masses            *)
Theorem selection_law r : is_row r ->
  (forall a t, (size a < L)%N -> selected_mass (rcons a t) = selected_mass a * r a t) ->
  forall f, select f = walk r L [::] f.
Proof.
move=> r_row split_mass f.
have mass a : (size a <= L)%N -> selected_mass a = path_prob r [::] a.
  elim/last_ind: a => [|a t IH] aL.
    rewrite /selected_mass -[RHS](dist_one select_dist).
    by apply: (dist_supp select_dist) => x _; rewrite prefix0s.
  rewrite size_rcons in aL.
  by rewrite split_mass // IH 1?ltnW // path_prob_rcons.
rewrite (dist_tuple _ select_dist) walk_sum; apply: eq_bigr => b _; congr (_ * _).
rewrite -mass ?size_tuple // /Pr; apply: (dist_supp select_dist) => x xL.
by rewrite prefixE size_tuple take_oversize ?xL.
Qed.

(* every law of L tokens has rows; q stands where it has none                  *)
Lemma law_rows (q : model F T) : is_row q -> exists2 r, is_row r & forall f, select f = walk r L [::] f.
Proof.
move=> q_row; have mass_ge0 a : 0 <= selected_mass a.
  by apply: (dist_pos select_dist) => x; exact: ler0n.
pose none c := (L <= size c)%N || (selected_mass c == 0).
pose r c t := if none c then q c t else selected_mass (rcons c t) / selected_mass c.
have r_row : is_row r.
  split=> [c t|c]; rewrite /r; first by case: ifP => _; rewrite ?q_row.1 // divr_ge0.
  case C: (none c); first exact: q_row.2.
  move/negbT: C; rewrite negb_or -ltnNge => /andP[cL c0].
  by rewrite -big_distrl /= selected_mass_split // divff.
exists r => //; apply: selection_law => // a t aL; rewrite /r /none leqNgt aL /=.
case: eqP => [a0|/eqP a0]; last by rewrite mulrCA divff // mulr1.
have sum0 : \sum_s selected_mass (rcons a s) = 0 by rewrite selected_mass_split.
by rewrite a0 mul0r (psumr_eq0P (fun s _ => mass_ge0 (rcons a s)) sum0).
Qed.

Theorem selected_block_lossless p r u : is_row p -> is_row r ->
  (forall f, select f = walk r L [::] f) ->
  lossless_call p L (x <- select;; block p r u L x).
Proof.
move=> p_row r_row law f; rewrite /continued /bind2 /bind law.
exact: (@block_lossless F T p r u p_row r_row L f).
Qed.

(* The same for the rows of Eq. 14, out of the masses of the selected path.   *)
(* This is how scored selection uses it: its masses are a hypothesis here.    *)
Section Masses.
Variables (q : model F T) (mass : seq T -> F).
Hypotheses (q_row : is_row q) (mass_ge0 : forall a, 0 <= mass a)
  (mass_split : forall a, mass a = \sum_t mass (rcons a t)).
Notation rows := (rows_of (field_numbers F) q mass).

Lemma rows_ofE c t : rows c t = if mass c == 0 then q c t else mass (rcons c t) / mass c.
Proof. by []. Qed.

Lemma rows_of_row : is_row rows.
Proof.
split=> [c t|c]; first by rewrite rows_ofE; case: eqP => _; rewrite ?q_row.1 // divr_ge0.
under eq_bigr do rewrite rows_ofE.
case: eqP => [_|/eqP n0]; first exact: q_row.2.
by rewrite -big_distrl /= -mass_split divff.
Qed.

Lemma rows_of_mass a t : mass (rcons a t) = mass a * rows a t.
Proof.
rewrite rows_ofE; case: eqP => [z|/eqP n0]; last by rewrite mulrCA divff // mulr1.
have sum0 : \sum_s mass (rcons a s) = 0 by rewrite -mass_split.
by rewrite z mul0r; exact: (psumr_eq0P (fun s _ => mass_ge0 (rcons a s)) sum0).
Qed.

Hypothesis select_mass : forall a, (size a <= L)%N -> selected_mass a = mass a.

Theorem selected_masses_law f : select f = walk rows L [::] f.
Proof.
apply: selection_law => [|a t aL]; first exact: rows_of_row.
have aL' := ltnW aL; rewrite !select_mass ?size_rcons //; exact: rows_of_mass.
Qed.

Theorem selected_masses_lossless p u : is_row p ->
  lossless_call p L (x <- select;; block p rows u L x).
Proof.
move=> p_row; apply: selected_block_lossless => //.
  exact: rows_of_row.
exact: selected_masses_law.
Qed.

(* P(X^tau starts with a), and with it the expected length                    *)
Theorem selected_node_mass p u a : is_row p -> proper u -> (size a <= L)%N ->
  node_mass (x <- select;; block p rows u L x) a = weight p rows u a * path_prob rows [::] a.
Proof.
move=> p_row u_proper aL; rewrite -(block_node_mass p_row rows_of_row u_proper aL).
exact: selected_masses_law.
Qed.
End Masses.
End Selected.
