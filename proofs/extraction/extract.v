(* Write the specification as an OCaml program (verifiers.ml): numbers stay a *)
(* parameter, natural numbers become machine integers.                        *)
From Coq Require Extraction.
From Coq Require Import ExtrOcamlBasic ExtrOcamlNatInt.
From Spectheory Require Import spec.common spec.token spec.block spec.greedy_multipath.
Set Extraction KeepSingleton.
Extraction "extraction/verifiers.ml" iteration token.token block.block greedy_multipath.greedy_multipath by_ratio.
