(* Theorem 2 of block2024 is false for two calls (docs/theory.md Statement 4.6). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Spectheory Require Import field walks distributions lossless optimal calls.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Truncated.
Variables (F : realFieldType) (T : finType) (p q : model F T).
Hypotheses (p_row : is_row p) (q_row : is_row q).
Variable cv : convention F T.
Hypothesis cv_proper : proper cv.

Lemma walk_cat (r : model F T) n m c (h : seq T -> F) :
  walk r n c (fun u => walk r m (c ++ u) (fun v => h (u ++ v))) = walk r (n + m) c h.
Proof.
elim: n c h => [|n IH] c h; first by rewrite /= /ret cats0.
rewrite addSn !walkS; apply: eq_bigr => t _; rewrite -IH; congr (_ * _).
by apply: walk_ext => x _; rewrite cat_rcons.
Qed.

(* verify the first m drafted tokens only *)
Definition truncated m x := block p q cv m (take m x).

Lemma truncated_sane m x : sane (truncated m) x.
Proof.
apply: (dist_weaken (P := fun o => prefix o.1 (take m x))).
  by move=> o ox; apply: prefix_trans ox _; rewrite -{2}(cat_take_drop m x) prefix_prefix.
exact: block_sane.
Qed.

Theorem truncated_lossless L m : (m <= L)%N -> lossless p q L (truncated m).
Proof.
move=> mL f; pose G z := block p q cv m z (fun o : seq T * T =>
  walk p (L - size o.1) (rcons o.1 o.2) (fun u => f (rcons o.1 o.2 ++ u))).
transitivity (walk q m [::] G).
  rewrite -[RHS](walk_resize q_row L); apply: walk_ext => x _.
  have -> : (m - L = 0)%N by apply/eqP.
  by rewrite /= /ret cats0.
have := @block_lossless F T p q cv p_row q_row m
          (fun z => walk p (L - m) z (fun v => f (z ++ v))).
rewrite (walk_cat p m.+1 (L - m) [::] f) addSn subnKC // => <-.
rewrite /G /continued /bind2 /bind /ret.
apply: (EV_eq q_row (V := block p q cv m)) => [x _|s y sm].
  exact: block_sane.
rewrite /=.
have -> : (L - size s = (m - size s) + (L - m))%N by rewrite addnC addnBA // subnK.
rewrite -walk_cat; apply: walk_ext => u _; apply: walk_ext => v _.
by rewrite catA.
Qed.
End Truncated.

Section Counterexample.
Variable F : realFieldType.
Notation B := bool_finType.
Notation O := false.   (* token 0 *)
Notation I := true.    (* token 1 *)

Fixpoint zeros (c : seq B) : bool := if c is t :: c' then (if t then false else zeros c') else true.
(* the row (a, 1 - a) *)
Definition row (a : F) (t : B) : F := if t then 1 - a else a.
Definition p (c : seq B) : B -> F :=
  if zeros c then
    match size c with 4 => row (3%:R / 4%:R) | _ => row 1 end
  else row 1.
Definition q (c : seq B) : B -> F :=
  if zeros c then
    match size c with
    | 0 | 1 | 2 | 3 | 4 | 6 => row 1
    | 5 => row (3%:R / 4%:R)
    | _ => row 0 end
  else row 0.

Definition in01 (a : F) : bool := 0 <= a <= 1.
Lemma q34 : in01 (3%:R / 4%:R).
Proof. by rewrite /in01 divr_ge0 ?ler0n //= ler_pdivr_mulr ?ltr0n // mul1r ler_nat. Qed.
Lemma row_row (r : seq B -> B -> F) :
  (forall c, exists2 a, in01 a & r c = row a) -> is_row r.
Proof.
move=> H; split=> [c t|c]; have [a /andP[a0 a1] ->] := H c.
  by case: t => //=; rewrite subr_ge0.
by rewrite big_bool /= subrK.
Qed.
Lemma b01 : in01 1. Proof. by rewrite /in01 ler01 lexx. Qed.
Lemma b00 : in01 0. Proof. by rewrite /in01 ler01 lexx. Qed.
Lemma p_row : is_row p.
Proof.
apply: row_row => c; rewrite /p; case: (zeros c); last by exists 1; rewrite ?b01.
by case: (size c) => [|[|[|[|[|n]]]]]; by [exists 1; rewrite ?b01 | exists (3%:R / 4%:R); rewrite ?q34].
Qed.
Lemma q_row : is_row q.
Proof.
apply: row_row => c; rewrite /q; case: (zeros c); last by exists 0; rewrite ?b00.
by case: (size c) => [|[|[|[|[|[|[|n]]]]]]]; by [exists 1; rewrite ?b01 | exists (3%:R / 4%:R); rewrite ?q34 | exists 0; rewrite ?b00].
Qed.

(* conventions: x/0 = 0 and 0/0 = 0; p where a residual is undefined *)
Definition z : convention F B := Convention (fun _ _ => 0) (fun=> 0) p.

Section Steps.
Variables (P Q : model F B).
Hypothesis Q_row : is_row Q.
Implicit Types (c x : seq B) (t : B) (w : F) (k : seq B * F -> F).
Notation loop := (block_loop P Q z).
Notation nextw := (next_weight P Q z).

Lemma walkO n c f : Q c = row 1 -> walk Q n.+1 c f = walk Q n (rcons c O) (fun x => f (O :: x)).
Proof. by move=> E; rewrite walkS big_bool E /= subrr mul0r add0r mul1r. Qed.
Lemma walkI n c f : Q c = row 0 -> walk Q n.+1 c f = walk Q n (rcons c I) (fun x => f (I :: x)).
Proof. by move=> E; rewrite walkS big_bool E /= subr0 mul0r addr0 mul1r. Qed.
Lemma walkM n c f : Q c = row (3%:R / 4%:R) -> walk Q n.+1 c f =
  3%:R / 4%:R * walk Q n (rcons c O) (fun x => f (O :: x))
  + 1 / 4%:R * walk Q n (rcons c I) (fun x => f (I :: x)).
Proof.
move=> E; rewrite walkS big_bool E /= addrC; congr (_ + _ * _); by field.
Qed.

Lemma step0 c t u x w w' b k : nextw c w t = w' -> total_gain P Q (rcons c t) w' = 0 ->
  loop c (t :: u :: x) w b k = loop (rcons c t) (u :: x) w' b k.
Proof.
move=> nw S0; have h : accept_prob P Q z (rcons c t) w' = 0.
  by rewrite accept_probE S0 mul0r; case: ifP.
rewrite -[LHS]/(let w' := nextw c w t in let c' := rcons c t in
  accept_prob P Q z c' w' * loop c' (u :: x) w' (c', w') k
  + (1 - accept_prob P Q z c' w') * loop c' (u :: x) w' b k) nw /= h.
by rewrite mul0r add0r subr0 mul1r.
Qed.

Lemma step1 c t u x w b k : nextw c w t = 1 -> total_gain P Q (rcons c t) 1 != 0 ->
  loop c (t :: u :: x) w b k = loop (rcons c t) (u :: x) 1 (rcons c t, 1) k.
Proof.
move=> nw Sn0; have h : accept_prob P Q z (rcons c t) 1 = 1.
  by rewrite accept_probE addrK (negbTE Sn0) divff.
rewrite -[LHS]/(let w' := nextw c w t in let c' := rcons c t in
  accept_prob P Q z c' w' * loop c' (u :: x) w' (c', w') k
  + (1 - accept_prob P Q z c' w') * loop c' (u :: x) w' b k) nw /= h.
by rewrite subrr mul0r addr0 mul1r.
Qed.

Lemma last0 c t w b k : nextw c w t = 0 -> loop c [:: t] w b k = k b.
Proof.
move=> nw; rewrite -[LHS]/(nextw c w t * k (rcons c t, nextw c w t)
  + (1 - nextw c w t) * k b) nw.
by rewrite mul0r add0r subr0 mul1r.
Qed.
Lemma last1 c t w b k : nextw c w t = 1 -> loop c [:: t] w b k = k (rcons c t, 1).
Proof.
move=> nw; rewrite -[LHS]/(nextw c w t * k (rcons c t, nextw c w t)
  + (1 - nextw c w t) * k b) nw.
by rewrite subrr mul0r addr0 mul1r.
Qed.

Lemma nextw0 c w t : w * P c t = 0 -> nextw c w t = 0.
Proof.
move=> wP; rewrite next_weightE; have -> : w * ratio P Q z c t = 0.
  by rewrite ratioE /=; case: ifP => _; rewrite ?mulr0 // mulrA wP mul0r.
by rewrite min_l // ler01.
Qed.
Lemma nextwE c w t : Q c t != 0 -> Num.min (w * (P c t / Q c t)) 1 = nextw c w t.
Proof. by rewrite next_weightE ratioE => /negbTE ->. Qed.

Lemma S_w0 c : total_gain P Q c 0 = 0.
Proof.
rewrite total_gainE; apply: big1 => t _; rewrite gainE mul0r sub0r max_r // oppr_le0; exact: Q_row.1.
Qed.
Lemma S_eq c : P c = Q c -> total_gain P Q c 1 = 0.
Proof. by move=> E; rewrite total_gainE; apply: big1 => t _; rewrite gainE mul1r E subrr maxxx. Qed.

Lemma n11 c t : P c t = Q c t -> Q c t != 0 -> nextw c 1 t = 1.
Proof. by move=> E n0; rewrite -nextwE // E divff // mul1r minxx. Qed.
Lemma n34 c t : P c t = 3%:R / 4%:R -> Q c t = 1 -> nextw c 1 t = 3%:R / 4%:R.
Proof.
move=> Ep Eq; rewrite -nextwE ?Eq ?oner_neq0 // Ep divr1 mul1r min_l //.
by case/andP: q34.
Qed.
Let n0_34 : 3%:R / 4%:R != 0 :> F.
Proof. by rewrite mulf_neq0 ?invr_neq0 ?pnatr_eq0. Qed.
Lemma n143 c t : P c t = 1 -> Q c t = 3%:R / 4%:R -> nextw c 1 t = 1.
Proof.
move=> Ep Eq; rewrite -nextwE ?Eq // Ep mul1r min_r // mul1r invf_ge1.
  by case/andP: q34.
by rewrite divr_gt0 ?ltr0n.
Qed.
Lemma n3443 c t : P c t = 1 -> Q c t = 3%:R / 4%:R -> nextw c (3%:R / 4%:R) t = 1.
Proof. by move=> Ep Eq; rewrite -nextwE ?Eq // Ep mul1r divff // minxx. Qed.

Lemma S34 c : P c = row 1 -> Q c = row (3%:R / 4%:R) -> total_gain P Q c (3%:R / 4%:R) = 0.
Proof.
move=> Ep Eq; rewrite total_gainE; apply: big1 => t _; rewrite gainE Ep Eq; case: t => /=.
  by rewrite subrr mulr0 sub0r max_r // oppr_le0 subr_ge0; case/andP: q34.
by rewrite mulr1 subrr maxxx.
Qed.
Lemma S10 c : P c = row 1 -> Q c = row 0 -> total_gain P Q c 1 != 0.
Proof.
move=> Ep Eq; rewrite total_gainE big_bool !gainE Ep Eq /= !mul1r subrr !subr0 sub0r.
by rewrite max_r ?oppr_le0 ?ler01 // add0r max_l ?ler01 // oner_neq0.
Qed.
End Steps.

Lemma z_proper : proper z.
Proof. by split=> [c t|c|]; rewrite ?lexx ?ler01 //; exact: p_row. Qed.

(* the two verifiers, behind any text c *)
Definition block4 c := block (behind p c) (behind q c) z 4.
Definition block3 c := truncated (behind p c) (behind q c) z 3.

Lemma corr_const P Q n s w (x : F) : is_row P -> is_row Q ->
  correction P Q z n s w (fun=> x) = x.
Proof.
move=> Pr Qr; have d : dist (fun=> True) (correction P Q z n s w).
  by apply: dist_correction => //; exact: z_proper.
by rewrite -[x]mulr1 (dist_scale d) (dist_one d).
Qed.

Notation it c V g := (iteration (behind q c) 4 (V c) g).
Let bp c : is_row (behind p c) := behind_row c p_row.
Let bq c : is_row (behind q c) := behind_row c q_row.

Ltac t11 := apply: n11; [reflexivity | exact: oner_neq0].
Ltac t143 := apply: n143; reflexivity.
Ltac t34 := apply: n34; reflexivity.
Ltac t3443 := apply: n3443; reflexivity.
Lemma mul_sub11 (w : F) : w * (1 - 1) = 0. Proof. by rewrite subrr mulr0. Qed.
Ltac t0 := apply: nextw0; first [exact: mul0r | exact: mul_sub11].
Ltac Seq := apply: S_eq; reflexivity.
Ltac Sw0 := apply: S_w0; exact: bq.
Ltac S34t := apply: S34; reflexivity.
Ltac S10t := apply: S10; reflexivity.
Ltac s0 v tn ts := rewrite (@step0 _ _ _ _ _ _ _ v); [ | solve [tn] | solve [ts] ].
Ltac s1 tn ts := rewrite step1; [ | solve [tn] | solve [ts] ].
Ltac l0 := rewrite last0; [ | solve [t0] ].
Ltac l1 tn := rewrite last1; [ | solve [tn] ].

(* first call of block verification: 0000 and a token of the row (3/4, 1/4) *)
Lemma first4 g : it [::] block4 g =
  3%:R / 4%:R * g ([:: O; O; O; O], O) + 1 / 4%:R * g ([:: O; O; O; O], I).
Proof.
rewrite /iteration /bind !walkO // -[LHS]/(block4 [::] [:: O; O; O; O] g).
rewrite /block4 /block /bind2 /bind /ret.
s0 (1:F) t11 Seq; s0 (1:F) t11 Seq; s0 (1:F) t11 Seq; l1 t11.
rewrite correctionE /= drawE big_bool /= addrC /behind /p /row /=.
congr (_ * _ + _ * _); by field.
Qed.

(* second call of block verification behind 00000 and behind 00001 *)
Lemma second4_O (f : nat -> F) :
  it [:: O; O; O; O; O] block4 (fun o => f (size o.1)) =
  3%:R / 4%:R * f 2%N + 1 / 4%:R * f 0%N.
Proof.
pose c := [:: O; O; O; O; O]; pose g (o : seq B * B) := f (size o.1).
rewrite /iteration /bind walkM // walkO // walkI // walkI // walkI // walkI // walkI //.
rewrite -[LHS]/(3%:R / 4%:R * block4 c [:: O; O; I; I] g
                + 1 / 4%:R * block4 c [:: I; I; I; I] g).
rewrite /block4 /block /bind2 /bind /ret; congr (_ * _ + _ * _).
  s0 (1:F) t143 Seq; s1 t11 S10t; s0 (0:F) t0 Sw0; l0.
  by rewrite /= /g /= corr_const.
s0 (0:F) t0 Sw0; s0 (0:F) t0 Sw0; s0 (0:F) t0 Sw0; l0.
by rewrite /= /g /= corr_const.
Qed.

Lemma second4_I (f : nat -> F) :
  it [:: O; O; O; O; I] block4 (fun o => f (size o.1)) = f 0%N.
Proof.
pose c := [:: O; O; O; O; I]; pose g (o : seq B * B) := f (size o.1).
rewrite /iteration /bind walkI // walkI // walkI // walkI //.
rewrite -[LHS]/(block4 c [:: I; I; I; I] g).
rewrite /block4 /block /bind2 /bind /ret.
s0 (0:F) t0 Sw0; s0 (0:F) t0 Sw0; s0 (0:F) t0 Sw0; l0.
by rewrite /= /g /= corr_const.
Qed.

(* the rival: first call 000 and 0; second call behind 0000 *)
Lemma first3 g : it [::] block3 g = g ([:: O; O; O], O).
Proof.
rewrite /iteration /bind !walkO // -[LHS]/(block (behind p [::]) (behind q [::]) z 3 [:: O; O; O] g).
rewrite /block /bind2 /bind /ret.
s0 (1:F) t11 Seq; s0 (1:F) t11 Seq; l1 t11.
rewrite correctionE /= drawE big_bool /= /behind /p /row /=.
by rewrite subrr mul0r add0r mul1r.
Qed.

Lemma second3 (f : nat -> F) :
  it [:: O; O; O; O] block3 (fun o => f (size o.1)) =
  3%:R / 4%:R * f 3%N + 1 / 4%:R * f 0%N.
Proof.
pose c := [:: O; O; O; O]; pose g (o : seq B * B) := f (size o.1).
rewrite /iteration /bind walkO // walkM // walkO // walkI // walkI // walkI //.
pose b3 x := block (behind p c) (behind q c) z 3 x g.
rewrite -[LHS]/(3%:R / 4%:R * b3 [:: O; O; O] + 1 / 4%:R * b3 [:: O; I; I]).
rewrite /b3 /block /bind2 /bind /ret; congr (_ * _ + _ * _).
  s0 (3%:R / 4%:R : F) t34 S34t; s0 (1:F) t3443 Seq; l1 t11.
  by rewrite /= /g /= corr_const.
s0 (3%:R / 4%:R : F) t34 S34t; s0 (0:F) t0 Sw0; l0.
by rewrite /= /g /= corr_const.
Qed.

(* E[N(2)], the mean number of tokens decoded in two calls of draft length 4 *)
Definition EN2 (V : seq B -> verifier F B) : F :=
  specdec q (fun=> 4%N) V 2 [::] (fun s => (size s)%:R).

Lemma EN2E V : (forall c x, size x = 4%N -> sane (V c) x) ->
  EN2 V = it [::] V (fun o => it (rcons o.1 o.2) V
    (fun o' => ((size o.1).+1 + (size o'.1).+1)%:R)).
Proof.
move=> Vs; rewrite /EN2 /= /bind2 /bind /ret.
apply: (EV_eq (bq [::]) (Vs [::])) => s y _ /=.
apply: (EV_eq (bq _) (Vs _)) => s' y' _ /=.
by rewrite cats0 size_cat !size_rcons.
Qed.

Theorem theorem2_false :
  [/\ is_row p, is_row q,
      forall c x, size x = 4%N -> sane (block3 c) x,
      forall c, lossless (behind p c) (behind q c) 4 (block3 c)
    & EN2 block4 = 57%:R / 8%:R /\ EN2 block3 = 29%:R / 4%:R].
Proof.
have zp := z_proper.
have s3 c x : size x = 4%N -> sane (block3 c) x.
  by move=> _; apply: truncated_sane.
have s4 c x : size x = 4%N -> sane (block4 c) x.
  by move=> _; apply: block_sane.
split; [exact: p_row | exact: q_row | exact: s3 | | ].
  by move=> c; apply: truncated_lossless.
split; rewrite EN2E //.
  rewrite first4 /= (second4_O (fun n => (5 + n.+1)%:R)) (second4_I (fun n => (5 + n.+1)%:R)).
  by field.
rewrite first3 /= (second3 (fun n => (4 + n.+1)%:R)).
by field.
Qed.

Corollary theorem2_gap : EN2 block4 < EN2 block3.
Proof.
have [_ _ _ _ [-> ->]] := theorem2_false.
rewrite -subr_gt0 (_ : 29%:R / 4%:R - 57%:R / 8%:R = 1 / 8%:R); last by field.
by rewrite divr_gt0 ?ltr0n ?ltr01.
Qed.
End Counterexample.
