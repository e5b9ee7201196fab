(* The specification over an ordered field, in the words of mathcomp.         *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Export spec.common spec.formulas spec.statements spec.token spec.block spec.decoding.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* the vocabulary *)
Definition tokens (T : finType) : seq T := enum T.

Notation numF := (field_numbers _).
Notation walk := (common.walk numF (tokens _)).
Notation draw := (common.draw numF (tokens _)).
Notation coin := (common.coin numF).
Notation path_prob := (common.path_prob numF).
Notation ratio := (formulas.ratio numF).
Notation gain := (formulas.gain numF).
Notation total_gain := (formulas.total_gain numF (tokens _)).
Notation residual := (formulas.residual numF (tokens _)).
Notation correction := (formulas.correction numF (tokens _)).
Notation iteration := (common.iteration numF (tokens _)).
Notation continued := (common.continued numF (tokens _)).
Notation lossless := (common.lossless numF (tokens _)).
Notation lossless_call := (common.lossless_call numF (tokens _)).
Notation token_loop := (token.token_loop numF).
Notation token := (token.token numF (tokens _)).
Notation next_weight := (block.next_weight numF).
Notation accept_prob := (block.accept_prob numF (tokens _)).
Notation block_loop := (block.block_loop numF (tokens _)).
Notation block := (block.block numF (tokens _)).

Notation specdec := (decoding.specdec numF (tokens _)).

(* `simpl` leaves the formulas of the papers folded *)
Arguments common.sum : simpl never.
Arguments common.draw : simpl never.
Arguments formulas.ratio : simpl never.
Arguments formulas.gain : simpl never.
Arguments formulas.total_gain : simpl never.
Arguments formulas.residual : simpl never.
Arguments formulas.correction : simpl never.
Arguments block.next_weight : simpl never.
Arguments block.accept_prob : simpl never.

Section Field.
Variables (F : realFieldType) (T : finType).
Implicit Types (r p q : model F T) (u : convention F T) (c x s : seq T) (t : T) (w h : F).

Lemma sumE (f : T -> F) : common.sum (field_numbers F) (tokens T) f = \sum_t f t.
Proof.
transitivity (\sum_(t <- enum T) f t); last by rewrite enumT [index_enum _]unlock.
rewrite /tokens; elim: (enum T) => [|t e IH] /=; first by rewrite big_nil.
by rewrite big_cons -IH.
Qed.

Lemma drawE (r : T -> F) f : draw r f = \sum_t r t * f t.
Proof. exact: sumE. Qed.

Lemma coinE h f : coin h f = h * f true + (1 - h) * f false.
Proof. by []. Qed.

Lemma ratioE p q u c t : ratio p q u c t = if q c t == 0 then ratio0 u c t else p c t / q c t.
Proof. by []. Qed.

Lemma gainE p q c w t : gain p q c w t = Num.max (w * p c t - q c t) 0.
Proof. by []. Qed.

Lemma total_gainE p q c w : total_gain p q c w = \sum_t gain p q c w t.
Proof. exact: sumE. Qed.

Lemma residualE p q u c w t : residual p q u c w t =
  if total_gain p q c w == 0 then res0 u c t else gain p q c w t / total_gain p q c w.
Proof. by []. Qed.

Lemma correctionE p q u L s w : correction p q u L s w =
  if size s == L then draw (p s) else draw (residual p q u s w).
Proof. by []. Qed.

Lemma next_weightE p q u c w t : next_weight p q u c w t = Num.min (w * ratio p q u c t) 1.
Proof. by []. Qed.

Lemma accept_probE p q u c w : accept_prob p q u c w =
  if total_gain p q c w + 1 - w == 0 then h0 u c
  else total_gain p q c w / (total_gain p q c w + 1 - w).
Proof. by []. Qed.

Lemma path_probE r c t x : path_prob r c (t :: x) = r c t * path_prob r (rcons c t) x.
Proof. by []. Qed.

Lemma walkS r n c f : walk r n.+1 c f = \sum_t r c t * walk r n (rcons c t) (fun x => f (t :: x)).
Proof. exact: drawE. Qed.

Lemma walk0E r c f : walk r 0 c f = f [::].
Proof. by []. Qed.

Lemma token_loopE p q u c t x f : token_loop p q u c (t :: x) f =
  Num.min (ratio p q u c t) 1 * token_loop p q u (rcons c t) x f
  + (1 - Num.min (ratio p q u c t) 1) * f c.
Proof. by []. Qed.

Lemma block_loopE p q u c t x w b f : block_loop p q u c (t :: x) w b f =
  let w' := next_weight p q u c w t in
  let c' := rcons c t in
  let h := if x is [::] then w' else accept_prob p q u c' w' in
  h * block_loop p q u c' x w' (c', w') f + (1 - h) * block_loop p q u c' x w' b f.
Proof. by []. Qed.
End Field.
