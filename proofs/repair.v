(* Repair B (8.10): every rule that keeps or drops drafted tokens becomes     *)
(* lossless with one more token of target probability 0.                      *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless selected.
From Spectheory Require Import spec.repair.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Repair.
Variables (F : realFieldType) (T : finType) (p : model F T) (L : nat) (kept : M F (seq T)).
Hypotheses (p_row : is_row p) (kept_dist : dist (fun x => size x <= L)%N kept).
Notation target := (repaired_target (field_numbers F) p).
Notation rows := (repaired_draft (field_numbers F) L kept).
Notation mass := (filled_mass (field_numbers F) L kept).

Lemma sum_option (g : option T -> F) : \sum_t g t = g None + \sum_t g (Some t).
Proof.
rewrite (bigD1 None) //=; congr (_ + _).
rewrite (reindex_omap Some id) /=; last by case.
by apply: eq_bigl => t; rewrite eqxx.
Qed.

Lemma target_row : is_row target.
Proof.
split=> [c [t|]|c]; first exact: p_row.1.
  exact: lexx.
by rewrite sum_option /= add0r; exact: p_row.2.
Qed.

(* the target never draws the new token                                       *)
Lemma target_walk n c f :
  walk target n c (fun x => f (kept_text x)) = walk p n (kept_text c) f.
Proof.
elim: n c f => [//|n IH] c f; rewrite !walkS sum_option /= mul0r add0r.
apply: eq_bigr => t _; congr (_ * _).
rewrite -[LHS]/(walk target n (rcons c (Some t)) (fun x => f (t :: kept_text x))).
by rewrite (IH _ (fun x => f (t :: x))) /kept_text -cats1 pmap_cat cats1.
Qed.

Lemma filled_size (x : seq T) : (size x <= L)%N -> size (filled L x) = L.
Proof. by move=> xL; rewrite size_cat size_map size_nseq subnKC. Qed.

Let fill : M F (seq (option T)) := x <- kept;; ret (filled L x).
Let fill_dist : dist (fun x => size x = L) fill.
Proof. by apply: (dist_bind kept_dist) => x xL; apply: dist_ret; exact: filled_size. Qed.

Lemma massE a : mass a = selected_mass fill a.
Proof. by apply: (dist_supp kept_dist) => x _; rewrite /ret; case: prefix. Qed.

Lemma mass_ge0 a : 0 <= mass a.
Proof. by rewrite massE; apply: (dist_pos fill_dist) => x; exact: ler0n. Qed.

Lemma mass_split a : (size a < L)%N -> \sum_t mass (rcons a t) = mass a.
Proof.
move=> aL; under eq_bigr do rewrite massE.
by rewrite massE; exact: (selected_mass_split fill_dist aL).
Qed.

Lemma rowsE c t : rows c t = if (L <= size c)%N || (mass c == 0)
  then (t == None)%:R else mass (rcons c t) / mass c.
Proof. by rewrite /repaired_draft; case: ifP => // _; case: t. Qed.

Lemma rows_row : is_row rows.
Proof.
split=> [c t|c].
  by rewrite rowsE; case: ifP => _; rewrite ?ler0n // divr_ge0 ?mass_ge0.
under eq_bigr do rewrite rowsE.
case C: ((L <= size c)%N || (mass c == 0)); last first.
  move/negbT: C; rewrite negb_or -ltnNge => /andP[cL c0].
  by rewrite -big_distrl /= mass_split // divff.
by rewrite (bigD1 None) //= big1 ?addr0 // => t /negbTE ->.
Qed.

Lemma mass_rcons a t : (size a < L)%N -> mass (rcons a t) = mass a * rows a t.
Proof.
move=> aL; rewrite rowsE leqNgt aL /=; case: eqP => [a0|/eqP a0].
  have sum0 : \sum_s mass (rcons a s) = 0 by rewrite mass_split.
  by rewrite a0 mul0r (psumr_eq0P (fun s _ => mass_ge0 (rcons a s)) sum0).
by rewrite mulrCA divff // mulr1.
Qed.

(* the filled draft follows the rows that are handed in                       *)
Theorem filled_law f : (x <- kept;; ret (filled L x)) f = walk rows L [::] f.
Proof.
apply: (selection_law fill_dist rows_row) => a t aL.
by rewrite -!massE mass_rcons.
Qed.

(* every verifier that is lossless for these rows is lossless for p           *)
Theorem repair_lossless verify f : lossless target rows L verify ->
  continued target L (repaired L kept verify) (fun b => f (kept_text b)) = walk p L.+1 [::] f.
Proof.
move=> good; rewrite -(target_walk L.+1 [::]) -good.
exact: (filled_law (fun x => verify x (fun o => walk target (L - size o.1) (rcons o.1 o.2)
  (fun b => f (kept_text (rcons o.1 o.2 ++ b)))))).
Qed.

(* and the new token is never output                                          *)
Theorem repair_no_end verify : lossless target rows L verify ->
  continued target L (repaired L kept verify) (fun b => (None \in b)%:R) = 0.
Proof.
move=> good; transitivity (walk target L.+1 [::] (fun b => (None \in b)%:R)).
  rewrite -good; exact: (filled_law (fun x => verify x (fun o => walk target (L - size o.1)
    (rcons o.1 o.2) (fun b => (None \in rcons o.1 o.2 ++ b)%:R)))).
elim: L.+1 [::] => [//|n IH] c; rewrite walkS sum_option /= mul0r add0r big1 // => t _.
by rewrite -[walk _ _ _ _]/(walk target n (rcons c (Some t)) (fun b => (None \in b)%:R)) IH mulr0.
Qed.

Corollary repair_token u f :
  continued target L (repaired L kept (token target rows u L)) (fun b => f (kept_text b))
  = walk p L.+1 [::] f.
Proof. by apply: repair_lossless; exact: token_lossless target_row rows_row L. Qed.

Corollary repair_block u f :
  continued target L (repaired L kept (block target rows u L)) (fun b => f (kept_text b))
  = walk p L.+1 [::] f.
Proof. by apply: repair_lossless; exact: block_lossless target_row rows_row L. Qed.
End Repair.
