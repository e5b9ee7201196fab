(* Coherence (8.2) of exact match in the length, of recursive rejection in the *)
(* number of drafts, and position by position in the length of the paths.     *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless adaptive recursive.
From Spectheory Require Import spec.draft_selection spec.recursive_rejection.
From Spectheory Require Import selection multi_round.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ---- exact match: naive sampling of one path                               *)
Section ExactMatch.
Variables (F : realFieldType) (T : finType) (p q : model F T) (N : nat).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Definition exact_match (n : nat) (x : seq T) : M F (seq T * T) := naive_sampling p n [:: x].

(* the output does not depend on the draft                                    *)
Lemma exact_match_output x f : (size x <= N)%N ->
  handed p exact_match N x f = walk p N.+1 [::] f.
Proof. by move=> xN; have := @naive_main F T p N f (size x) [::] [:: x] xN; rewrite subn0. Qed.

Theorem exact_match_coherent : coherent p q exact_match N.
Proof.
move=> x f xN; under eq_bigr do rewrite exact_match_output ?size_rcons //.
by rewrite -big_distrl /= q_row.2 mul1r exact_match_output // ltnW.
Qed.

(* lossless under every rule, whatever it reads                               *)
Theorem exact_match_kept (kept : M F (seq T)) f : dist (fun x => size x <= N)%N kept ->
  (x <- kept;; handed p exact_match N x) f = walk p N.+1 [::] f.
Proof.
move=> dk; rewrite -[RHS](dist_const _ dk).
by apply: (dist_supp dk) => x xN; exact: exact_match_output.
Qed.
End ExactMatch.

(* ---- recursive rejection: one more draft of the position                   *)
Section RecursiveRejection.
Variables (F : realFieldType) (T : finType) (cv : convention F T).
Hypothesis cv_proper : proper cv.
Notation tests := (recursive_tests (field_numbers F) (tokens T) cv).

Theorem recursive_coherent (q r : T -> F) x f : prob_row r -> prob_row q ->
  \sum_t q t * tests q (rcons x t) r f = tests q x r f.
Proof.
move=> r_row q_row; elim: x r r_row => [|x1 x IH] r r_row.
  by rewrite -[RHS](tests_lossless cv_proper 1 f r_row q_row) /bind severalS drawE.
pose a := Num.min (ratio (fun=> r) (fun=> q) cv [::] x1) 1.
pose r' := residual (fun=> r) (fun=> q) cv [::] 1.
have E y : tests q (x1 :: y) r f = a * f x1 + (1 - a) * tests q y r' f by [].
transitivity (\sum_t (q t * (a * f x1) + (1 - a) * (q t * tests q (rcons x t) r' f))).
  by apply: eq_bigr => t _; rewrite rcons_cons E; ring.
rewrite big_split -big_distrl -big_distrr /= q_row.2 mul1r IH //; exact: residual_row.
Qed.
End RecursiveRejection.

(* ---- position by position: one more token on each of the paths             *)
Section Positions.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Variable choose : seq T -> seq T -> M F T.
Hypotheses (p_row : is_row p) (q_row : is_row q).
Hypothesis choose_dist : forall c xs, xs != [::] -> dist (fun=> True) (choose c xs).
Hypothesis choose_lossless : forall c K f, (0 < K)%N ->
  (xs <- several K (draw (q c));; choose c xs) f = draw (p c) f.
Implicit Types (c xs : seq T) (paths zs : seq (seq T)) (y : T).

Fixpoint one_more c paths : M F (seq (seq T)) :=
  if paths is x :: paths' then
    t <- draw (q (c ++ x));; zs <- one_more c paths';; ret (rcons x t :: zs)
  else ret [::].

Lemma one_more_dist c paths : dist (fun zs => size zs = size paths /\
  (all (fun x => x != [::]) paths -> next_tokens zs = next_tokens paths)) (one_more c paths).
Proof.
elim: paths => [|x paths IH] /=; first exact: dist_ret.
apply: (dist_bind (dist_draw (q_row.1 _) (q_row.2 _))) => t _.
apply: (dist_bind IH) => zs [sz nx]; apply: dist_ret; split; first by rewrite /= sz.
by case: x => [//|s x] /nx E; rewrite /next_tokens /= -!/(next_tokens _) E.
Qed.

Lemma one_more_empty c K (f : seq (seq T) -> F) : one_more c (nseq K [::]) f =
  several K (draw (q c)) (fun xs => f [seq [:: t] | t <- xs]).
Proof.
elim: K f => [//|K IH] f; rewrite severalS /= /bind /ret cats0 !drawE.
by apply: eq_bigr => t _; rewrite IH.
Qed.

Lemma one_more_agree c paths y (f : seq (seq T) -> F) : all (fun x => x != [::]) paths ->
  one_more c paths (fun zs => f (agree y zs)) = one_more (rcons c y) (agree y paths) f.
Proof.
elim: paths f => [//|[//|s x] paths IH] f /= nz; rewrite /bind /ret /agree /=.
have [->|sy] := eqVneq s y.
  rewrite eqxx /= /bind /ret !drawE cat_rcons; apply: eq_bigr => t _; congr (_ * _).
  exact: (IH (fun zs => f (rcons x t :: zs))).
rewrite (_ : (Some s == Some y) = false) /=; last by apply/negbTE.
rewrite -[LHS]/(draw (q (c ++ s :: x)) (fun=> one_more c paths (fun zs => f (agree y zs)))) IH //.
by rewrite drawE -big_distrl /= q_row.2 mul1r.
Qed.

Variable N : nat.

Theorem selection_coherent n c paths f : paths != [::] -> all (fun x => size x == n) paths ->
  (size c + n < N)%N -> let k o := cont p (N - size o.1) (rcons o.1 o.2) f in
  one_more c paths (fun zs => selection p choose n.+1 c zs k) = selection p choose n c paths k.
Proof.
move=> pn sz cN k; elim: n c paths pn sz cN => [|n IH] c paths pn sz cN.
  rewrite addn0 in cN; have K0 : (0 < size paths)%N by rewrite lt0n size_eq0.
  have E : paths = nseq (size paths) [::].
    by elim: paths {pn K0} sz => [//|x paths IH] /= /andP[/eqP/size0nil -> /IH <-].
  rewrite {1}E one_more_empty.
  transitivity (draw (p c) (fun y => k (c, y))); last by [].
  rewrite -(choose_lossless c _ K0) /bind.
  have dK : dist (fun xs => size xs = size paths) (several (size paths) (draw (q c))).
    exact: dist_several (dist_draw (q_row.1 c) (q_row.2 c)).
  apply: (dist_supp dK) => xs xsK; rewrite /= /bind.
  have -> : next_tokens [seq [:: t] | t <- xs] = xs.
    by rewrite /next_tokens; elim: (xs) => [//|t ts IHt] /=; rewrite IHt.
  have xs0 : xs != [::] by rewrite -size_eq0 xsK -lt0n.
  apply: (dist_supp (choose_dist c xs0)) => y _; case: ifP => _ //.
  by rewrite drawE /ret /k /= size_rcons -[(N - size c)%N]subnSK ?contS.
have nz : all (fun x => x != [::]) paths by apply: sub_all sz => -[].
have nx0 : next_tokens paths != [::] by case: paths pn nz {sz} => [//|[|s x] paths].
transitivity (one_more c paths (fun zs => choose c (next_tokens paths) (fun y =>
    if nilp (agree y zs) then k (c, y) else selection p choose n.+1 (rcons c y) (agree y zs) k))).
  apply: (dist_supp (one_more_dist c paths)) => zs [_ /(_ nz) E].
  rewrite -[LHS]/(choose c (next_tokens zs) (fun y => (if nilp (agree y zs) then ret (c, y)
    else selection p choose n.+1 (rcons c y) (agree y zs)) k)) E.
  by apply: (dist_supp (choose_dist c nx0)) => y _; case: ifP.
rewrite (swap_fin _ (one_more_dist c paths) (choose_dist c nx0)).
rewrite -[RHS]/(choose c (next_tokens paths) (fun y => (if nilp (agree y paths) then ret (c, y)
  else selection p choose n (rcons c y) (agree y paths)) k)).
apply: (dist_supp (choose_dist c nx0)) => y _.
rewrite (one_more_agree c y (fun zs => if nilp zs then k (c, y)
  else selection p choose n.+1 (rcons c y) zs k) nz).
have [ag0|ag0] := eqVneq (agree y paths) [::]; first by rewrite ag0.
rewrite ifF; last by apply/negbTE; rewrite /nilp size_eq0.
have agn : all (fun x => size x == n) (agree y paths).
  rewrite /agree all_map; apply/allP => z; rewrite mem_filter => /andP[_ /(allP sz) /eqP zn] /=.
  by rewrite size_behead zn.
rewrite -(IH (rcons c y) (agree y paths) ag0 agn); last by rewrite size_rcons addSnnS.
apply: (dist_supp (one_more_dist (rcons c y) (agree y paths))) => zs [E _].
by rewrite ifF //; apply/negbTE; rewrite /nilp E size_eq0.
Qed.
End Positions.

Corollary recursive_paths_coherent (F : realFieldType) (T : finType) (p q : model F T)
    (cv : convention F T) N n c paths f :
  is_row p -> is_row q -> proper cv ->
  paths != [::] -> all (fun x => size x == n) paths -> (size c + n < N)%N ->
  let choose c x := recursive_tests (field_numbers F) (tokens T) cv (q c) x (p c) in
  let k o := cont p (N - size o.1) (rcons o.1 o.2) f in
  one_more q c paths (fun zs => selection p choose n.+1 c zs k) = selection p choose n c paths k.
Proof.
move=> [p0 p1] [q0 q1] cv_proper pn sz cN; apply: selection_coherent => //.
- by move=> c' xs _; apply: tests_dist => //; split.
- by move=> c' K g _; apply: tests_lossless => //; split.
Qed.
