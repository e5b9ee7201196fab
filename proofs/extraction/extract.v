(* Write the specification as an OCaml program (verifiers.ml): numbers stay a *)
(* parameter, natural numbers become machine integers.                        *)
From Coq Require Extraction.
From Coq Require Import ExtrOcamlBasic ExtrOcamlNatInt.
From Spectheory Require Import spec.formulas spec.token spec.block spec.greedy_multipath spec.mixed_multipath.
From Spectheory Require Import spec.draft_selection spec.tree_selection spec.recursive_rejection spec.kseq spec.otm.
From Spectheory Require Import spec.greedy_block spec.spectr_gbv spec.without_replacement.
Set Extraction KeepSingleton.
Extraction "extraction/verifiers.ml" iteration token.token block.block greedy_multipath.greedy_multipath by_ratio
  mixed_multipath.mixed_multipath draft_selection.draft_selection naive_sampling several tree_verification
  recursive_tests kseq_tests otm_choose greedy_block.greedy_block spectr_gbv.spectr_gbv distinct_tree.
