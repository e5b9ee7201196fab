(* Greedy multi-path block verification is lossless for every number of paths. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal programs selected.
From Spectheory Require Import spec.greedy_multipath spec.mixed_multipath.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* a strict total order of the tokens at every context (Definition 5.2)       *)
Definition ranking (T : finType) (lower : seq T -> T -> T -> bool) : Prop :=
  [/\ forall c t, lower c t t = false, forall c, transitive (lower c)
    & forall c t t', t != t' -> lower c t t' || lower c t' t].

Section Greedy.
Variables (F : realFieldType) (T : finType) (q : model F T).
Variable lower : seq T -> T -> T -> bool.
Hypotheses (q_row : is_row q) (lower_ranking : ranking lower).
Implicit Types (a c x y : seq T) (s t : T).
Notation mass_below := (mass_below (field_numbers F) (tokens T) q lower).
Notation path_lower := (path_lower lower).
Notation highest := (highest (field_numbers F) (tokens T) lower q).
Notation skewed := (skewed (field_numbers F) (tokens T) q lower).
Notation power := (power (field_numbers F)).

Let lower_irr c t : lower c t t = false. Proof. by case: lower_ranking. Qed.
Let lower_trans c : transitive (lower c). Proof. by case: lower_ranking. Qed.
Let lower_asym c t s : lower c t s -> lower c s t = false.
Proof. by move=> ts; apply/negP => /(lower_trans ts); rewrite lower_irr. Qed.
Let lower_eq c t s : lower c t s = false -> lower c s t = false -> t = s.
Proof.
by case: lower_ranking => _ _ tot a b; apply/eqP/negPn/negP => /(tot c); rewrite a b.
Qed.

(* x is below a, where e says whether the paths through a count as below      *)
Fixpoint below (e : bool) c x a {struct a} : bool :=
  if a is s :: a' then
    if x is t :: x' then
      if lower c t s then true else if lower c s t then false else below e (rcons c t) x' a'
    else false
  else e.

Lemma below_false c x a : below false c x a = path_lower c x a.
Proof.
elim: a c x => [|s a IH] c [|t x] //=.
by case: (lower c t s) => //; case: (lower c s t).
Qed.

(* where x is neither below a nor above it, it goes through a                 *)
Lemma below_prefix c x a : (size a <= size x)%N ->
  (below true c x a)%:R = (below false c x a)%:R + (prefix a x)%:R :> F.
Proof.
elim: a c x => [|s a IH] c [|t x] //=; rewrite ?add0r //.
move=> ax; case ts: (lower c t s).
  rewrite (_ : (s == t) = false) ?addr0 //.
  by apply/eqP => st; rewrite st lower_irr in ts.
case st: (lower c s t).
  rewrite (_ : (s == t) = false) ?addr0 //.
  by apply/eqP => E; rewrite E lower_irr in st.
by rewrite IH // (lower_eq ts st) eqxx.
Qed.

(* the higher of two paths is below a if and only if both are                 *)
Lemma below_higher e c x y a : size x = size y -> (size a <= size x)%N ->
  below e c (if path_lower c x y then y else x) a = below e c x a && below e c y a.
Proof.
elim: a c x y => [|s a IH] c x y; first by move=> _ _; rewrite /= andbb.
case: x y => [|t x] [|t' y] //= [xy] ax; case tt': (lower c t t') => /=.
  case t's: (lower c t' s); first by rewrite (lower_trans tt' t's).
  case st': (lower c s t'); first by rewrite andbF.
  by rewrite (lower_eq t's st') in tt' *; rewrite tt'.
case t't: (lower c t' t) => /=.
  case ts: (lower c t s); first by rewrite (lower_trans t't ts).
  case st: (lower c s t) => //.
  by rewrite -(lower_eq ts st) t't andbT.
rewrite (lower_eq tt' t't); have := IH (rcons c t') x y xy ax.
case: (path_lower _ x y) => H; case: (lower c t' s) => //; by case: (lower c s t').
Qed.

Lemma size_higher x y (b : bool) n : size x = n -> size y = n -> size (if b then y else x) = n.
Proof. by case: b. Qed.

(* ---- the mass of the paths below a: Eqs. 22 and 23 without the power       *)
Lemma mass_belowE e w c n a : (size a <= n)%N ->
  w * walk q n c (fun x => (below e c x a)%:R) = mass_below w c a + e%:R * (w * path_prob q c a).
Proof.
elim: a w c n => [|s a IH] w c n an.
  have -> : walk q n c (fun x => (below e c x [::])%:R) = e%:R.
    by rewrite -[RHS](walk1 q_row.2 n c); apply: walk_ext => -[].
  by rewrite /= mulr1 add0r mulrC.
case: n an => [//|n] an.
rewrite walkS.
have E t : q c t * walk q n (rcons c t) (fun x => (below e c (t :: x) (s :: a))%:R) =
    (if lower c t s then q c t else 0)
    + (if t == s then q c s * walk q n (rcons c s) (fun x => (below e (rcons c s) x a)%:R) else 0).
  rewrite /=; case ts: (lower c t s).
    rewrite (walk1 q_row.2) mulr1 (_ : (t == s) = false) ?addr0 //.
    by apply/eqP => E; rewrite E lower_irr in ts.
  case st: (lower c s t).
    rewrite walk0 mulr0 (_ : (t == s) = false) ?addr0 //.
    by apply/eqP => E; rewrite E lower_irr in st.
  by rewrite (lower_eq ts st) eqxx add0r.
under eq_bigr do rewrite E.
rewrite big_split /= -(big_mkcond (fun t => t == s)) big_pred1_eq mulrDr mulrA IH //.
by rewrite sumE !mulrA addrA.
Qed.

(* ---- the highest of K = more + 1 paths                                     *)
Lemma highest_dist L more : dist (fun x => size x = L) (highest L more).
Proof.
elim: more => [|more IH] /=; apply: (dist_bind (dist_walk L [::] q_row)) => x xL.
  exact: dist_ret.
apply: (dist_bind IH) => y yL; apply: dist_ret; exact: size_higher.
Qed.

Lemma highest_below e L more a : (size a <= L)%N ->
  highest L more (fun x => (below e [::] x a)%:R)
  = power (walk q L [::] (fun x => (below e [::] x a)%:R)) more.+1.
Proof.
move=> aL; elim: more => [|more IH]; first by rewrite /= mulr1.
set b := fun x => _ in IH *; rewrite -[RHS]/(walk q L [::] b * power (walk q L [::] b) more.+1).
rewrite -IH mulrC -walkZ -[LHS]/(walk q L [::] (fun x =>
  highest L more (fun y => b (if path_lower [::] x y then y else x)))).
apply: walk_ext => x xL; rewrite mulrC -(dist_scale (highest_dist L more)).
apply: (dist_supp (highest_dist L more)) => y yL.
by rewrite /b below_higher ?xL ?yL // -natrM mulnb.
Qed.

Lemma highest_mass L more a : (size a <= L)%N ->
  highest L more (fun x => (prefix a x)%:R) = skewed more.+1 a.
Proof.
move=> aL; have dh := highest_dist L more.
have B e := highest_below e more aL.
have E e : walk q L [::] (fun x => (below e [::] x a)%:R)
    = mass_below 1 [::] a + e%:R * path_prob q [::] a.
  by have := @mass_belowE e 1 [::] L a aL; rewrite !mul1r.
rewrite /greedy_multipath.skewed -[LHS](addrK (highest L more (fun x => (below false [::] x a)%:R))).
rewrite -(dist_add dh); congr (_ - _); last by rewrite B E mul0r addr0.
transitivity (highest L more (fun x => (below true [::] x a)%:R)).
  by apply: (dist_supp dh) => x xL; rewrite below_prefix ?xL // addrC.
by rewrite B E mul1r addrC.
Qed.

Lemma skewed_ge0 more c : 0 <= skewed more.+1 c.
Proof.
rewrite -(@highest_mass (size c)) //; apply: (dist_pos (highest_dist _ _)) => x; exact: ler0n.
Qed.

Lemma skewed_split more c : skewed more.+1 c = \sum_t skewed more.+1 (rcons c t).
Proof.
have dh := highest_dist (size c).+1 more.
rewrite -(@highest_mass (size c).+1 more c) //.
have -> : \sum_t skewed more.+1 (rcons c t) =
    \sum_t highest (size c).+1 more (fun x => (prefix (rcons c t) x)%:R).
  by apply: eq_bigr => t _; rewrite highest_mass ?size_rcons.
rewrite -(dist_sum (index_enum T) (fun t x => (prefix (rcons c t) x)%:R) dh).
apply: (dist_supp dh) => x xL.
have [cx|ncx] := boolP (prefix c x).
  move: cx xL => /prefixP[[|s z] ->]; first by rewrite cats0 => /n_Sn.
  move=> _; rewrite (bigD1 s) //= big1 => [|t ts].
    by rewrite -cats1 prefix_catr ?eqxx //= eqxx prefix0s addr0.
  by rewrite -cats1 prefix_catr ?eqxx //= (negbTE ts) .
rewrite big1 // => t _; case E: (prefix (rcons c t) x) => //.
by move: ncx; rewrite (prefix_trans (prefix_rcons c t) E).
Qed.

(* greedy2026, the main theorem: for every number of paths, every draft        *)
(* length, every vocabulary and every tree-based ranking                       *)
Theorem greedy_multipath_lossless p u L more : is_row p ->
  lossless_call p L (greedy_multipath (field_numbers F) (tokens T) p q u lower L more).
Proof.
move=> p_row; apply: (selected_masses_lossless (highest_dist L more)) => //.
- exact: skewed_ge0.
- exact: skewed_split.
- by move=> a; exact: highest_mass.
Qed.

Theorem greedy_multipath_node_mass p u L more a : is_row p -> proper u -> (size a <= L)%N ->
  let r := rows_of (field_numbers F) q (skewed more.+1) in
  node_mass (greedy_multipath (field_numbers F) (tokens T) p q u lower L more) a
  = weight p r u a * path_prob r [::] a.
Proof.
move=> p_row u_proper aL /=; apply: (selected_node_mass (highest_dist L more)) => //.
- exact: skewed_ge0.
- exact: skewed_split.
- by move=> b; exact: highest_mass.
Qed.

(* its expected length: E[tau] is the sum of w(a) r(a) over 1 <= |a| <= L      *)
Theorem greedy_multipath_mean_tau p u L more : is_row p -> proper u ->
  let r := rows_of (field_numbers F) q (skewed more.+1) in
  mean_tau (greedy_multipath (field_numbers F) (tokens T) p q u lower L more)
  = \sum_(i < L) \sum_(a : i.+1.-tuple T) weight p r u a * path_prob r [::] a.
Proof.
move=> p_row u_proper r; have r_row : is_row r.
  apply: rows_of_row => //; [exact: skewed_ge0 | exact: skewed_split].
rewrite (@call_mean_tau _ _ L).
  apply: eq_bigr => i _; apply: eq_bigr => a _.
  by rewrite greedy_multipath_node_mass // size_tuple.
apply: (dist_bind (highest_dist L more)) => x xL.
apply: (dist_weaken _ (block_sane p_row r_row u_proper L x)) => o /size_prefix.
by rewrite xL.
Qed.

(* ---- the first draft or the highest one                                    *)
Variable lambda : F.
Hypothesis lambda_01 : 0 <= lambda <= 1.
Notation first_or_highest := (first_or_highest (field_numbers F) (tokens T) q lower lambda).
Notation mixed_mass := (mixed_mass (field_numbers F) (tokens T) q lower lambda).

Lemma mixed_massE K a :
  mixed_mass K a = lambda * path_prob q [::] a + (1 - lambda) * skewed K a.
Proof. by []. Qed.

Lemma first_or_highest_dist L more : dist (fun x => size x = L) (first_or_highest L more).
Proof.
apply: (dist_bind (dist_walk L [::] q_row)) => x xL; case: more => [|more]; first exact: dist_ret.
apply: (dist_bind (highest_dist L more)) => y yL; apply: (dist_bind (dist_coin lambda_01)) => b _.
by apply: dist_ret; case: b => //; exact: size_higher.
Qed.

Lemma first_or_highest_mass L more a : (size a <= L)%N ->
  first_or_highest L more (fun x => (prefix a x)%:R) = mixed_mass more.+1 a.
Proof.
move=> aL; rewrite mixed_massE -(highest_mass more aL) -(walk_prefix q_row [::] aL).
case: more => [|more].
  rewrite -[LHS]/(walk q L [::] (fun x => (prefix a x)%:R)).
  rewrite -[X in _ + _ * X]/(walk q L [::] (fun x => (prefix a x)%:R)).
  by ring.
set f := fun x : seq T => (prefix a x)%:R : F.
rewrite -[highest L more.+1 f]/(walk q L [::] (fun x =>
  highest L more (fun y => f (if path_lower [::] x y then y else x)))).
rewrite -!walkZ -walkD -[LHS]/(walk q L [::] (fun x => highest L more (fun y =>
  lambda * f x + (1 - lambda) * f (if path_lower [::] x y then y else x)))).
apply: walk_ext => x xL; have dh := highest_dist L more.
have C v : highest L more (fun=> v) = v.
  rewrite -[RHS]mulr1 -(dist_one dh) -(dist_scale dh).
  by apply: (dist_supp dh) => y _; rewrite mulr1.
by rewrite (dist_add dh) C (dist_scale dh).
Qed.

Theorem mixed_multipath_lossless p u L more : is_row p ->
  lossless_call p L (mixed_multipath (field_numbers F) (tokens T) p q u lower lambda L more).
Proof.
move=> p_row; have /andP[l0 l1] := lambda_01.
apply: (selected_masses_lossless (first_or_highest_dist L more)) => //.
- move=> a; rewrite mixed_massE; apply: addr_ge0; apply: mulr_ge0 => //.
  + exact: path_prob_ge0.
  + by rewrite subr_ge0.
  + exact: skewed_ge0.
- move=> a; rewrite mixed_massE.
  under eq_bigr do rewrite mixed_massE path_prob_rcons.
  by rewrite big_split /= -!big_distrr /= q_row.2 mulr1 -skewed_split.
- by move=> a; exact: first_or_highest_mass.
Qed.
End Greedy.

(* Eq. 21 with ties by the order of the tokens is such a ranking              *)
Lemma by_ratio_ranking (F : realFieldType) (T : finType) (p q : model F T) u earlier :
  ranking (fun _ : seq T => earlier) ->
  ranking (by_ratio (field_numbers F) p q u earlier).
Proof.
case=> irr tr tot.
have E c t t' : by_ratio (field_numbers F) p q u earlier c t t' =
    if ratio p q u c t == ratio p q u c t' then earlier t t' else ratio p q u c t < ratio p q u c t'.
  rewrite /by_ratio /= -/(ratio p q u c t) -/(ratio p q u c t').
  case: eqP => // /eqP ne; rewrite lt_neqAle ne /=; apply/eqP/idP => [<-|le].
    by rewrite le_maxr lexx.
  by rewrite max_r.
split=> [c t|c t s v|c t t' tt']; rewrite !E.
- by rewrite eqxx (irr [::]).
- move: (ratio p q u c t) (ratio p q u c s) (ratio p q u c v) => b a d.
  have [ab|_] := eqVneq a b; have [bd|_] := eqVneq b d.
  + by rewrite ab bd eqxx; exact: (tr [::]).
  + by rewrite ab => _ lt; rewrite (lt_eqF lt).
  + by rewrite -bd => lt _; rewrite (lt_eqF lt).
  + by move=> lt lt'; rewrite (lt_eqF (lt_trans lt lt')) (lt_trans lt lt').
- rewrite [ratio p q u c t' == _]eq_sym; case: eqP => [_|/eqP ne]; first exact: (tot [::]).
  by rewrite -neq_lt.
Qed.
