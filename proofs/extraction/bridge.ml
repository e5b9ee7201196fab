(* Runs the extracted programs with the exact rationals of zarith.

   Reads requests from standard input, one a line:
     verifier V L K  p-rows  q-rows  more
   The rows are rationals, of all contexts of depth 0 to L (p) and 0 to L - 1 (q), shorter contexts
   first, in the order of the tokens.  "more" are the further numbers of some verifiers, see below.
   Prints one line for each: the probabilities R(b) of all outputs b of 1 to L + 1 tokens in the same
   order. *)
open Verifiers

(* A number, or a combination of outputs with rational weights: a program maps a function of the output
   to its mean, so one run with the function that returns the output itself gives the whole law. *)
module Outputs = Map.Make (struct type t = int list let compare = compare end)
type value = Number of Q.t | Law of Q.t Outputs.t

let number = function Number a -> a | Law _ -> failwith "a law where a number is needed"
let on_numbers f a b = Number (f (number a) (number b))

let add a b =
  match (a, b) with
  | Law a, Law b -> Law (Outputs.union (fun _ x y -> Some (Q.add x y)) a b)
  | (Law _ as law), Number zero | Number zero, (Law _ as law) when Q.equal zero Q.zero -> law
  | _ -> on_numbers Q.add a b

let mul a b =
  match (a, b) with
  | Number weight, Law _ when Q.equal weight Q.zero -> Number Q.zero
  | Number weight, Law law -> Law (Outputs.map (Q.mul weight) law)
  | _ -> on_numbers Q.mul a b

(* x/0 = 0, as in mathcomp *)
let rationals =
  { zero = Number Q.zero; one = Number Q.one; add; mul; subtract = on_numbers Q.sub;
    div = on_numbers (fun a b -> if Q.equal b Q.zero then Q.zero else Q.div a b);
    max = on_numbers Q.max; min = on_numbers Q.min; equal = (fun a b -> Q.equal (number a) (number b)) }

(* 0, 1, .., v - 1 *)
let tokens v = List.init v (fun t -> t)

(* all lists of n tokens, in order *)
let rec texts vocabulary n =
  if n = 0 then [ [] ]
  else List.concat_map (fun x -> List.map (fun t -> x @ [ t ]) vocabulary) (texts vocabulary (n - 1))

(* the rows of all contexts of depth 0 to n, and what is left of the numbers *)
let model vocabulary n numbers =
  let table = Hashtbl.create 97 in
  let left = ref numbers in
  let next () = match !left with number :: rest -> left := rest; number | [] -> failwith "too few numbers" in
  for depth = 0 to n do
    List.iter
      (fun c -> List.iter (fun t -> Hashtbl.add table (c, t) (next ())) vocabulary)
      (texts vocabulary depth)
  done;
  ((fun c t -> Hashtbl.find table (c, t)), !left)

(* the numbers "more" of the verifiers that have some *)
let one_number = function [ number ] -> number | _ -> failwith "one more number is needed"

(* kseq: the division factor of n drafts after c, for every c of depth 0 to L - 1 and n = 1 to K *)
let factors vocabulary length drafts numbers =
  let keys =
    List.concat_map
      (fun depth ->
        List.concat_map (fun c -> List.init drafts (fun n -> (c, n + 1))) (texts vocabulary depth))
      (List.init length (fun depth -> depth))
  in
  let table = List.combine keys numbers in
  fun c n -> List.assoc (c, n) table

(* otm: for every c of depth 0 to L - 1 and n = 1 to K a plan, a row for each n drafts *)
let plans vocabulary length drafts numbers =
  let table = Hashtbl.create 97 in
  let left = ref numbers in
  let next () = match !left with number :: rest -> left := rest; number | [] -> failwith "too few numbers" in
  for depth = 0 to length - 1 do
    List.iter
      (fun c ->
        for n = 1 to drafts do
          List.iter
            (fun x -> List.iter (fun y -> Hashtbl.add table (c, x, y) (next ())) vocabulary)
            (texts vocabulary n)
        done)
      (texts vocabulary depth)
  done;
  if !left <> [] then failwith "too many numbers";
  fun c x y -> Hashtbl.find table (c, x, y)

let call name v length drafts p q more =
  let vocabulary = tokens v in
  let zero = Number Q.zero in
  let convention = { ratio0 = (fun _ _ -> zero); h0 = (fun _ -> zero); res0 = p } in
  let one_path verify =
    iteration rationals vocabulary q length (verify rationals vocabulary p q convention length) in
  (* Coq's equality of tokens hides their type *)
  let by_position choose =
    Obj.magic draft_selection rationals nat_eqType vocabulary p q choose length drafts in
  let lower = by_ratio rationals p q convention (fun t t' -> t < t') in
  let rejection c x = recursive_tests rationals vocabulary convention (q c) x (p c) in
  match name with
  | "token" -> one_path token
  | "block" -> one_path block
  | "greedy_block" ->
      iteration rationals vocabulary q length (greedy_block rationals vocabulary p q convention length)
  | "greedy_multipath" ->
      greedy_multipath rationals vocabulary p q convention lower length (drafts - 1)
  | "mixed_multipath" ->
      mixed_multipath rationals vocabulary p q convention lower (one_number more) length (drafts - 1)
  | "naive_sampling" ->
      bind (several drafts (walk rationals vocabulary q length []))
        (Obj.magic naive_sampling rationals nat_eqType vocabulary p length)
  | "spectr_gbv" ->
      (* output_law counts a correction that is 0/0 as no output *)
      let convention = { convention with res0 = (fun _ _ -> zero) } in
      Obj.magic spectr_gbv rationals nat_eqType vocabulary p q convention length drafts
  | "multi_round" -> by_position rejection
  | "multi_round_tree" ->
      (* "more" are the numbers of children at depths 0 to L - 1 *)
      Obj.magic tree_verification rationals nat_eqType vocabulary p q rejection length
        (List.map (fun k -> Q.to_int (number k)) more)
  | "multi_round_without_replacement" ->
      Obj.magic distinct_tree rationals nat_eqType vocabulary p q convention
        (List.map (fun k -> Q.to_int (number k)) more) []
  | "kseq" | "spectr" ->
      let factor = factors vocabulary length drafts more in
      by_position (fun c x ->
          let n = List.length x in
          kseq_tests rationals vocabulary (p c) (q c) (factor c n) (fun _ -> zero) (p c) n x)
  | "otm" ->
      let plan = plans vocabulary length drafts more in
      by_position (fun c x -> otm_choose rationals vocabulary (q c) (plan c) (p c) x)
  | _ -> failwith ("no extracted verifier is called " ^ name)

let answer line =
  match String.split_on_char ' ' line with
  | name :: v :: length :: drafts :: numbers ->
      let v = int_of_string v and length = int_of_string length and drafts = int_of_string drafts in
      let vocabulary = tokens v in
      let p, rest = model vocabulary length (List.map (fun text -> Number (Q.of_string text)) numbers) in
      let q, more = model vocabulary (length - 1) rest in
      let program = call name v length drafts p q more in
      let law =
        match program (fun (x, y) -> Law (Outputs.singleton (x @ [ y ]) Q.one)) with
        | Law law -> law
        | Number _ -> Outputs.empty  (* no output has positive probability *)
      in
      let probability b = Stdlib.Option.value (Outputs.find_opt b law) ~default:Q.zero in
      let outputs = List.concat_map (texts vocabulary) (List.init (length + 1) (fun i -> i + 1)) in
      String.concat " " (List.map (fun b -> Q.to_string (probability b)) outputs)
  | _ -> failwith "a request has four words and the rows"

let () =
  try
    while true do
      print_endline (answer (input_line stdin))
    done
  with End_of_file -> ()
