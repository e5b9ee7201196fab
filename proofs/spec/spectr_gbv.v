(* SpecTr-GBV: spectrgbv2026, Algorithm 1, as printed (the paper writes q for *)
(* the target and p for the draft).                                           *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Spectheory Require Import spec.formulas spec.draft_selection spec.greedy_multipath.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section SpecTrGBV.
Variables (F : Type) (N : numbers F) (T : eqType) (vocabulary : seq T).
Variables (p q : model F T) (u : convention F T) (L K : nat).
Notation "0" := (zero N).
Notation "1" := (one N).
Notation "a + b" := (add N a b).
Notation "a - b" := (subtract N a b).
Notation target a := (path_prob N p [::] a).
Notation draft a := (path_prob N q [::] a).

(* p(a) (1 - min(q(a)/p(a), 1))^K, and 0 where p(a) = 0                        *)
Definition left_over (a : seq T) : F :=
  if equal N (target a) 0 then 0
  else mul N (target a) (power N (1 - min N (div N (draft a) (target a)) 1) K).
Definition sum_left (a : seq T) : F := sum N vocabulary (fun t => left_over (rcons a t)).
(* 1 - (1 - q(a))^K                                                            *)
Definition any_draft (a : seq T) : F := 1 - power N (1 - draft a) K.
(* Eq. 2 for |a| < L, Eq. 3 for |a| = L (lines 4, 11)                          *)
Definition gbv_accept (a : seq T) : F :=
  let above := if size a == L then target a - left_over a else sum_left a - left_over a in
  let below := if size a == L then any_draft a else any_draft a - target a + sum_left a in
  if equal N below 0 then h0 u a else div N above below.
(* Eq. 4 (line 19)                                                            *)
Definition gbv_residual (a : seq T) (t : T) : F :=
  if equal N (sum_left a) 0 then res0 u a t else div N (left_over (rcons a t)) (sum_left a).

(* lines 3 to 16 for one draft: c = x_k^{i-1}, the prefixes up to length from  *)
(* are left out; t = the accepted sub-block, H = the set of the others        *)
Fixpoint gbv_prefixes (from : nat) (c rest t : seq T) (H : seq (seq T)) : M F (seq T * seq (seq T)) :=
  if rest is y :: rest' then
    let c' := rcons c y in
    if size c' <= from then gbv_prefixes from c' rest' t H     (* line 3      *)
    else
      accepted <- coin N (gbv_accept c');;                     (* lines 4, 11 *)
      if accepted && (c' \notin H) then gbv_prefixes from c' rest' c' H  (* lines 5, 6, 12, 13 *)
      else gbv_prefixes from c' rest' t (c' :: H)              (* lines 8, 15 *)
  else ret (t, H).
Fixpoint gbv_drafts (drafts : seq (seq T)) (t : seq T) (H : seq (seq T)) : M F (seq T) :=
  if drafts is x :: others then                                (* line 2      *)
    if size t == L then ret t                                  (* line 13, break *)
    else '(t', H') <- gbv_prefixes (size t) [::] x t H;; gbv_drafts others t' H'
  else ret t.

Definition spectr_gbv : M F (seq T * T) :=
  drafts <- several K (walk N vocabulary q L [::]);;
  t <- gbv_drafts drafts [::] [::];;                           (* lines 1 to 17 *)
  y <- draw N vocabulary (if size t == L then p t else gbv_residual t);;  (* lines 13, 19 *)
  ret (t, y).                                                  (* line 21     *)
End SpecTrGBV.
